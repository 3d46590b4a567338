from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("grading", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="tricks",
            field=models.JSONField(
                default=list, help_text="Signs of a program made to fool its grader, for review"
            ),
        ),
    ]
