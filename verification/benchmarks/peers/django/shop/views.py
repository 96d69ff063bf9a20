"""The operations."""

from rest_framework.generics import ListCreateAPIView
from rest_framework.response import Response

from shop.models import Pet
from shop.serializers import PageSerializer, PetSerializer


class Pets(ListCreateAPIView):
    queryset = Pet.objects.order_by("id")
    serializer_class = PetSerializer

    def list(self, request, *args, **kwargs):
        query = PageSerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        pets = self.get_queryset()
        if "status" in query.validated_data:
            pets = pets.filter(status=query.validated_data["status"])
        return Response(self.get_serializer(pets[: query.validated_data["limit"]], many=True).data)

    def get_success_headers(self, data):
        return {"Location": f"/v1/pets/{data['id']}"}
