from tests.support.service import Shop


async def test_first(shop: Shop):
    a = await shop.post({"name": "Rex", "categoryId": 1})
    assert a.status == 201, a.body
    b = await shop.ask("GET", "/v1/pets")
    assert b.json() == [a.json()]
    await shop.restart()
    assert (await shop.ask("GET", "/v1/pets")).json() == [a.json()]
