"""Routes of accounts: getting in, one's own account, and the administrator's pages of people."""

from django.contrib.auth.views import LogoutView, PasswordChangeView
from django.urls import path, reverse_lazy

from grading.views import account, joining, people

urlpatterns = [
    path("login/", joining.LogIn.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    # The admin has no log-in page of its own, so there is one to protect.
    path("admin/login/", joining.LogIn.as_view()),
    path("sign-up/", joining.sign_up, name="sign-up"),
    path("join/<str:token>/", joining.join, name="join"),
    path("password/lost/", joining.LostPassword.as_view(), name="password-lost"),
    path("password/<uidb64>/<token>/", joining.NewPassword.as_view(), name="password-new"),
    path("account/", account.account, name="account"),
    path(
        "account/password/",
        PasswordChangeView.as_view(
            template_name="accounts/password.html", success_url=reverse_lazy("account")
        ),
        name="password-change",
    ),
    path("account/sign-out-others/", account.sign_out_others, name="sign-out-others"),
    path("people/", people.people, name="people"),
    path("people/invite/", people.invite, name="invite"),
    path("people/invitations/<int:pk>/revoke/", people.revoke, name="invitation-revoke"),
    path("people/<int:pk>/", people.person, name="person"),
    path("people/<int:pk>/quota/", people.quota, name="person-quota"),
    path("people/<int:pk>/reset-link/", people.reset_link, name="reset-link"),
]
