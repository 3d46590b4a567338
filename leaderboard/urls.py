"""Routes of boards and models."""

from django.urls import path

from leaderboard import comparison_views, heatmap_views, views

urlpatterns = [
    path("", views.home, name="home"),
    path("b/<slug:slug>/", views.board, name="board"),
    path("b/<slug:slug>/v<int:number>/", views.board, name="board_version"),
    path("b/<slug:slug>/v<int:number>/s<int:snapshot>/", views.board, name="board_snapshot"),
    path("b/<slug:slug>/v<int:number>/changes/", views.changes, name="board_changes"),
    path("b/<slug:slug>/heatmap/", heatmap_views.page, name="heatmap"),
    path("b/<slug:slug>/v<int:number>/heatmap/", heatmap_views.page, name="heatmap_version"),
    path("compare/", comparison_views.start, name="compare_start"),
    path("b/<slug:slug>/compare/", comparison_views.page, name="compare"),
    # Not a slug: a model's name may have no ASCII letter.
    path("m/<str:slug>/", views.model, name="model"),
    path("method/", views.method, name="method"),
]
