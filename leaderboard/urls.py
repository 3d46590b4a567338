"""Routes of boards and models."""

from django.urls import path

from leaderboard import audit_views, comparison_views, export_views, heatmap_views, views

urlpatterns = [
    path("", views.home, name="home"),
    path("b/<slug:slug>/", views.board, name="board"),
    path("b/<slug:slug>/v<int:number>/", views.board, name="board_version"),
    path("b/<slug:slug>/v<int:number>/s<int:snapshot>/", views.board, name="board_snapshot"),
    path("b/<slug:slug>/v<int:number>/changes/", views.changes, name="board_changes"),
    path("b/<slug:slug>/heatmap/", heatmap_views.page, name="heatmap"),
    path("b/<slug:slug>/v<int:number>/heatmap/", heatmap_views.page, name="heatmap_version"),
    path("b/<slug:slug>/v<int:number>/audit/", audit_views.page, name="audit"),
    path("compare/", comparison_views.start, name="compare_start"),
    path("b/<slug:slug>/compare/", comparison_views.choose, name="compare"),
    path("b/<slug:slug>/compare/<str:a>...<str:b>/", comparison_views.page, name="compare_pair"),
    path(
        "b/<slug:slug>/v<int:number>/compare/<str:a>...<str:b>/",
        comparison_views.page,
        name="compare_version",
    ),
    path("b/<slug:slug>/badge/<str:model>.svg", export_views.model_badge, name="badge"),
    path("s/<slug:public_id>/results.jsonl", export_views.human_eval, name="human-eval-results"),
    path("s/<slug:public_id>/eval_results.json", export_views.evalplus, name="evalplus-results"),
    # Not a slug: a model's name may have no ASCII letter.
    path("m/<str:slug>/", views.model, name="model"),
    path("method/", views.method, name="method"),
]
