"""The upload page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from grading.forms import SubmissionForm
from grading.models import LanguageModel

MODEL_NAMES_OFFERED = 500


@login_required
def submit(request: HttpRequest) -> HttpResponse:
    form = SubmissionForm(request.user, initial={"benchmark": request.GET.get("benchmark")})
    return _page(request, form)


def _page(request: HttpRequest, form: SubmissionForm, status: int = 200) -> HttpResponse:
    names = LanguageModel.objects.values_list("name", flat=True)[:MODEL_NAMES_OFFERED]
    context = {"form": form, "model_names": names}
    return render(request, "grading/submit.html", context, status=status)


def prompts(request: HttpRequest, slug: str) -> HttpResponse:
    raise Http404


def example(request: HttpRequest, slug: str) -> HttpResponse:
    raise Http404
