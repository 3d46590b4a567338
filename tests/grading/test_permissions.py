from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import Http404

from grading import permissions
from grading.models import Submission
from tests.grading import web_records

pytestmark = pytest.mark.django_db


def test_it_shows_public_submissions_to_all_and_private_ones_to_owner_and_staff() -> None:
    version = web_records.benchmark()
    rosa, sam = web_records.person("rosa"), web_records.person("sam", staff=True)
    tom = web_records.person("tom")
    public = web_records.submission(version, rosa)
    private = web_records.submission(version, rosa, private=True)

    for viewer in (AnonymousUser(), tom):
        assert list(permissions.visible_submissions(viewer)) == [public]
        with pytest.raises(Http404):
            permissions.submission_or_404(viewer, private.public_id)
    for viewer in (rosa, sam):
        assert set(permissions.visible_submissions(viewer)) == {public, private}
        assert permissions.submission_or_404(viewer, private.public_id) == private


def test_an_unpublished_version_is_seen_by_staff_and_its_uploaders_only() -> None:
    version = web_records.benchmark(published=False)
    rosa, sam = web_records.person("rosa"), web_records.person("sam", staff=True)
    made = web_records.submission(version, rosa)

    assert not permissions.visible_submissions(AnonymousUser()).exists()
    assert list(permissions.visible_submissions(rosa)) == [made]
    with pytest.raises(Http404):
        permissions.version_or_404(rosa, "tidepool")
    assert permissions.version_or_404(sam, "tidepool") == version


def test_the_newest_version_is_the_default_and_an_odd_number_asks_for_it_too() -> None:
    version = web_records.benchmark()
    newer = version.benchmark.versions.create(number=2, content_hash="1" * 64)

    assert permissions.version_or_404(AnonymousUser(), "tidepool") == newer
    assert permissions.version_or_404(AnonymousUser(), "tidepool", "1") == version
    assert permissions.version_or_404(AnonymousUser(), "tidepool", "one") == newer
    assert permissions.version_or_404(AnonymousUser(), "tidepool", "²") == newer
    with pytest.raises(Http404):
        permissions.version_or_404(AnonymousUser(), "tidepool", "3")


def test_owner_and_staff_may_cancel_what_is_being_graded() -> None:
    version = web_records.benchmark()
    rosa, sam = web_records.person("rosa"), web_records.person("sam", staff=True)
    live = web_records.submission(version, rosa, lambda task, index: None)

    assert permissions.may_cancel(rosa, live)
    assert permissions.may_cancel(sam, live)
    assert not permissions.may_cancel(web_records.person("tom"), live)
    assert not permissions.may_cancel(AnonymousUser(), live)
    live.state = Submission.State.DONE
    assert not permissions.may_cancel(rosa, live)


def test_hidden_targets_are_for_staff_not_for_the_uploader() -> None:
    hidden = web_records.benchmark(hidden=True).benchmark
    open_ = web_records.benchmark("open").benchmark

    assert permissions.sees_targets(web_records.person("sam", staff=True), hidden)
    assert not permissions.sees_targets(web_records.person("rosa"), hidden)
    assert permissions.sees_targets(AnonymousUser(), open_)
