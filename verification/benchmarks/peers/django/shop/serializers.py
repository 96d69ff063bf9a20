"""What is read and what is answered."""

from rest_framework import serializers

from shop.models import Pet

STATUSES = ("available", "pending", "sold")


class PetSerializer(serializers.ModelSerializer):
    name = serializers.CharField(max_length=255)
    categoryId = serializers.IntegerField(source="category_id", min_value=-(2**63), max_value=2**63 - 1)  # noqa: N815
    status = serializers.ChoiceField(STATUSES, default="available")

    class Meta:
        model = Pet
        fields = ("id", "name", "categoryId", "status")


class PageSerializer(serializers.Serializer):
    limit = serializers.IntegerField(min_value=1, max_value=100, default=20)
    status = serializers.ChoiceField(STATUSES, required=False)
