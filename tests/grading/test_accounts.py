"""Getting in: invitations, sign-up, lost passwords, and the brake on guessing."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core import mail as outbox
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from grading.accounts import invitations, roles, throttle
from grading.accounts.models import Attempts, Invitation
from grading.accounts.roles import Role
from tests.grading import web_records
from tests.grading.web_records import PASSWORD

pytestmark = pytest.mark.django_db

ACCOUNT = {"username": "nora", "password1": PASSWORD, "password2": PASSWORD}


def link_in(page: str) -> str:
    found = re.search(r'<code id="secret"[^>]*>http://testserver([^<]+)</code>', page)
    assert found is not None
    return found[1]


@pytest.fixture
def admin(client: Client) -> User:
    user = web_records.person("ada", role=Role.ADMIN)
    client.force_login(user)
    return user


def test_an_invitation_makes_one_account_with_its_roles(client: Client, admin: User) -> None:
    answer = client.post(reverse("invite"), {"days": 7, "roles": ["triager"]})
    link = link_in(answer.content.decode())
    token = link.split("/")[2]
    stored = Invitation.objects.get()
    assert token not in (stored.token_hash, str(stored.__dict__))

    guest = Client()
    assert "Accept the invitation" in guest.get(link).content.decode()
    assert guest.post(link, ACCOUNT).status_code == 302
    nora = User.objects.get(username="nora")
    assert roles.given_roles(nora) == [Role.TRIAGER]
    assert guest.get(reverse("triage")).status_code == 200

    assert Client().get(link).status_code == 410
    assert Client().post(link, ACCOUNT | {"username": "second"}).status_code == 410
    assert not User.objects.filter(username="second").exists()


def test_an_old_or_revoked_invitation_opens_nothing(client: Client, admin: User) -> None:
    token = invitations.invite(admin, [], days=1)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().post(reverse("join", args=[token]), ACCOUNT).status_code == 410
    token = invitations.invite(admin, [], days=1)
    pk = invitations.open_invitations().get().pk
    client.post(reverse("invitation-revoke", args=[pk]))
    assert Client().get(reverse("join", args=[token])).status_code == 410
    assert Client().get(reverse("join", args=["x" * 43])).status_code == 410


def test_an_account_that_is_refused_leaves_its_invitation_open(admin: User) -> None:
    token = invitations.invite(admin, [], days=1)
    refused = Client().post(reverse("join", args=[token]), ACCOUNT | {"username": "ADA"})
    assert refused.status_code == 422
    assert invitations.find(token) is not None


def test_an_invitation_is_mailed_where_mail_is_set_up(
    client: Client, admin: User, settings: Settings
) -> None:
    data = {"days": 1, "email": "nora@example.org"}
    client.post(reverse("invite"), data)
    assert outbox.outbox == []
    settings.SENDS_EMAIL = True
    page = client.post(reverse("invite"), data).content.decode()
    assert link_in(page) in outbox.outbox[0].body
    assert "mailed to nora@example.org" in page


def test_strangers_sign_up_only_where_the_site_lets_them(
    client: Client, settings: Settings
) -> None:
    assert client.post(reverse("sign-up"), ACCOUNT).status_code == 404
    settings.SIGN_UP = True
    assert client.post(reverse("sign-up"), ACCOUNT).status_code == 302
    assert roles.roles_of(User.objects.get(username="nora")) == {Role.USER}
    for number in range(9):
        Client().post(reverse("sign-up"), ACCOUNT | {"username": f"nora{number}"})
    refused = Client().post(reverse("sign-up"), ACCOUNT | {"username": "eleventh"})
    assert "Too many attempts" in refused.content.decode()
    assert User.objects.count() == 10


def test_a_reset_link_of_the_administrator_works_once(client: Client, admin: User) -> None:
    rosa = web_records.person("rosa")
    page = client.post(reverse("reset-link", args=[rosa.pk])).content.decode()
    link = link_in(page)
    visitor = Client()
    form = visitor.get(link, follow=True)
    target = form.redirect_chain[-1][0]
    new = "another fine password 7"
    visitor.post(target, {"new_password1": new, "new_password2": new})
    assert visitor.login(username="rosa", password=new)
    assert "not open any more" in Client().get(link, follow=True).content.decode()


def test_a_reset_is_mailed_and_tells_nobody_whose_address_it_is(
    client: Client, settings: Settings
) -> None:
    assert "sends no e-mail" in client.get(reverse("password-lost")).content.decode()
    settings.SENDS_EMAIL = True
    rosa = web_records.person("rosa")
    User.objects.filter(pk=rosa.pk).update(email="rosa@example.org")
    answers = [
        client.post(reverse("password-lost"), {"email": address}, follow=True).content
        for address in ("rosa@example.org", "nobody@example.org")
    ]
    assert all(b"If the address belongs to an account" in answer for answer in answers)
    (mail,) = outbox.outbox
    assert "/password/" in mail.body


def log_in(client: Client, name: str, password: str, address: str = "192.0.2.1") -> bool:
    data = {"username": name, "password": password}
    return client.post(reverse("login"), data, REMOTE_ADDR=address).status_code == 302


def test_guessing_is_braked_for_the_guesser_and_not_for_the_owner(client: Client) -> None:
    web_records.person("rosa")
    for _ in range(5):
        assert not log_in(client, "rosa", "wrong")
    assert not log_in(client, "ROSA", PASSWORD)
    assert not log_in(client, "rosa", PASSWORD)
    assert log_in(Client(), "rosa", PASSWORD, address="192.0.2.2")
    Attempts.objects.update(since=timezone.now() - throttle.WINDOW - timedelta(seconds=1))
    assert log_in(client, "rosa", PASSWORD)


def test_many_names_from_one_network_are_braked_too(client: Client) -> None:
    web_records.person("rosa")
    for number in range(30):
        assert not log_in(client, f"name{number}", "wrong", address=f"2001:db8::{number:x}")
    assert not log_in(client, "rosa", PASSWORD, address="2001:db8::ffff")
    assert log_in(client, "rosa", PASSWORD, address="2001:db8:1::1")


def test_the_admin_site_has_the_same_brake(client: Client) -> None:
    web_records.person("ada", superuser=True)
    for _ in range(5):
        client.post("/admin/login/", {"username": "ada", "password": "wrong"})
    answer = client.post("/admin/login/", {"username": "ada", "password": PASSWORD})
    assert "Too many attempts" in answer.content.decode()


def test_the_table_of_attempts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_ROWS", 10)
    for number in range(40):
        throttle.spend([throttle.Limit("log in", (str(number),), 5)])
    assert Attempts.objects.count() <= 11


def test_a_proxy_is_believed_only_where_there_is_one(settings: Settings) -> None:
    request = RequestFactory().get(
        "/", REMOTE_ADDR="192.0.2.9", HTTP_X_FORWARDED_FOR="1.1.1.1, 2.2.2.2"
    )
    assert throttle.address_of(request) == "192.0.2.9"
    settings.HTTPS = True
    assert throttle.address_of(request) == "2.2.2.2"


def test_signing_out_elsewhere_keeps_this_session_and_the_password(client: Client) -> None:
    rosa = web_records.person("rosa")
    other = Client()
    other.force_login(rosa)
    client.force_login(rosa)
    url = reverse("sign-out-others")
    assert client.post(url, {"password": "wrong"}).status_code == 422
    assert other.get(reverse("account")).status_code == 200
    assert client.post(url, {"password": PASSWORD}).status_code == 302
    assert client.get(reverse("account")).status_code == 200
    assert other.get(reverse("account")).status_code == 302
    assert Client().login(username="rosa", password=PASSWORD)


def test_roles_are_given_and_taken_and_nobody_shuts_themselves_out(
    client: Client, admin: User
) -> None:
    rosa = web_records.person("rosa")
    url = reverse("person", args=[rosa.pk])
    client.post(url, {"roles": ["admin", "triager"], "is_active": "on"})
    rosa = User.objects.get(pk=rosa.pk)
    assert rosa.is_superuser and rosa.is_staff
    client.post(url, {"roles": ["benchmark maintainer"], "is_active": "on"})
    rosa = User.objects.get(pk=rosa.pk)
    assert roles.given_roles(rosa) == [Role.MAINTAINER]
    assert not rosa.is_staff
    there = Client()
    there.force_login(rosa)
    client.post(url, {"roles": []})
    assert there.get(reverse("account")).status_code == 302

    own = reverse("person", args=[admin.pk])
    assert client.post(own, {"roles": [], "is_active": "on"}).status_code == 422
    assert client.post(own, {"roles": ["admin"]}).status_code == 422
    assert User.objects.get(pk=admin.pk).is_superuser
