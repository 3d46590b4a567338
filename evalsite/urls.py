"""Routes of the whole site."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView
from django_rq.stats_views import stats_json
from django_rq.urls import get_admin_urlpatterns

from evalsite import api, health, views

dashboard = [
    path("stats.json", views.jobs_page(stats_json), name="home_json"),
    *get_admin_urlpatterns(view_wrapper=views.jobs_page),
]

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    # What a browser asks for on pages that name no icon, such as the admin's.
    path("favicon.ico", RedirectView.as_view(url=static("favicon.svg"))),
    path("theme/", views.theme, name="theme"),
    path("client/evalsite.py", views.client, name="client"),
    path("", include("grading.accounts.urls")),
    path("admin/queues/", include((dashboard, "django_rq"))),
    path("admin/", admin.site.urls),
    path("api/", api.reference, name="api"),
    path("api/v1/", api.api.urls),
    path("", include("grading.urls")),
    path("", include("leaderboard.urls")),
]
