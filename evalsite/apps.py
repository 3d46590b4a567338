from django.apps import AppConfig


class EvalsiteConfig(AppConfig):
    name = "evalsite"
