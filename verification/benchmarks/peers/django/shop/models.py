"""The tables of the database as it is; Django makes none of them."""

from django.db import models


class Pet(models.Model):
    id = models.BigAutoField(primary_key=True)
    name = models.TextField()
    category_id = models.BigIntegerField()
    status = models.TextField()

    class Meta:
        managed = False
        db_table = "pets"


class ApiKey(models.Model):
    id = models.BigAutoField(primary_key=True)
    account_id = models.BigIntegerField()
    digest = models.BinaryField(unique=True)
    expires_at_ms = models.BigIntegerField(null=True)
    revoked_at_ms = models.BigIntegerField(null=True)

    class Meta:
        managed = False
        db_table = "api_keys"
