"""Routes of submissions, samples, tasks and triage."""

from django.urls import path

from grading.views import (
    managing,
    queue,
    regrades,
    samples,
    sandbox,
    submissions,
    tasks,
    tokens,
    triage,
    triage_group,
    uploads,
)

SAMPLE = "s/<slug:public_id>/<str:task_slug>/<int:index>/"

urlpatterns = [
    path("submit/", uploads.submit, name="submit"),
    path("submit/<slug:token>/errors.csv", uploads.errors, name="upload-errors"),
    path("submit/<slug:token>/report.json", uploads.report, name="upload-report"),
    path("b/<slug:slug>/prompts.jsonl", uploads.prompts, name="prompts"),
    path("b/<slug:slug>/example.jsonl", uploads.example, name="example"),
    path("b/<slug:slug>/tasks/", tasks.tasks, name="tasks"),
    path("b/<slug:slug>/tasks/<str:task_slug>/", tasks.task, name="task"),
    path("s/<slug:public_id>/", submissions.submission, name="submission"),
    path("s/<slug:public_id>/progress/", submissions.progress, name="submission-progress"),
    path("s/<slug:public_id>/samples/", submissions.samples, name="submission-samples"),
    path("s/<slug:public_id>/cancel/", submissions.cancel, name="submission-cancel"),
    path("s/<slug:public_id>/manage/", managing.manage, name="submission-manage"),
    path("s/<slug:public_id>/visibility/", managing.visibility, name="submission-visibility"),
    path("s/<slug:public_id>/withdraw/", managing.withdraw, name="submission-withdraw"),
    path("s/<slug:public_id>/delete/", managing.delete, name="submission-delete"),
    path(SAMPLE, samples.sample, name="sample"),
    path(f"{SAMPLE}generation.txt", samples.generation, name="sample-generation"),
    path(f"{SAMPLE}program.txt", samples.program, name="sample-program"),
    path(f"{SAMPLE}case.jsonl", samples.case, name="sample-case"),
    path("queue/", queue.page, name="queue"),
    path("queue/control/", queue.control, name="queue-control"),
    path("sandbox/", sandbox.sandbox, name="sandbox"),
    path("account/tokens/", tokens.tokens, name="tokens"),
    path("account/tokens/<int:token_id>/revoke/", tokens.revoke, name="token-revoke"),
    path("crashes/", triage.crashes, name="crashes"),
    path("triage/", triage.queue, name="triage"),
    path("triage/decide/", triage.decide, name="triage-decide"),
    path("triage/samples/", triage.samples, name="triage-samples"),
    path("triage/<slug:public_id>/", triage_group.group, name="triage-group"),
    path("triage/<slug:public_id>/decide/", triage_group.decide, name="triage-group-decide"),
    path("triage/<slug:public_id>/merge/", triage_group.merge, name="triage-merge"),
    path("triage/<slug:public_id>/split/", triage_group.split, name="triage-split"),
    path("regrades/", regrades.index, name="regrades"),
    path("regrades/new/", regrades.new, name="regrade-new"),
    path("regrades/<slug:public_id>/", regrades.regrade, name="regrade"),
    path("regrades/<slug:public_id>/apply/", regrades.apply, name="regrade-apply"),
    path("regrades/<slug:public_id>/cancel/", regrades.cancel, name="regrade-cancel"),
]
