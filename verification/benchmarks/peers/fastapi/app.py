"""The benchmark's job in FastAPI, SQLAlchemy 2 (async, aiosqlite) and slowapi.

`PETS_DATABASE=… uvicorn app:app --loop uvloop --http httptools` in this folder
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from slowapi import Limiter, _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded
from sqlalchemy import event, select, update
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

LIMITS = "1000000000/minute;100000000000/day"

engine = create_async_engine(
    f"sqlite+aiosqlite:///{os.environ['PETS_DATABASE']}", connect_args={"timeout": 30}, pool_timeout=30
)
sessions = async_sessionmaker(engine, expire_on_commit=False)


@event.listens_for(engine.sync_engine, "connect")
def durable(connection: Any, _record: object) -> None:
    """Every commit is on the disk before it returns."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


class Base(DeclarativeBase):
    """The tables that are mapped here."""


class PetRow(Base):
    __tablename__ = "pets"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    category_id: Mapped[int]
    status: Mapped[str]


class ApiKeyRow(Base):
    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int]
    digest: Mapped[bytes]
    expires_at_ms: Mapped[int | None]
    revoked_at_ms: Mapped[int | None]


class OrderRow(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int]
    pet_id: Mapped[int]
    status: Mapped[str]
    created_at_ms: Mapped[int]


class Status(StrEnum):
    AVAILABLE = "available"
    PENDING = "pending"
    SOLD = "sold"


class NewPet(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str = Field(min_length=1, max_length=255)
    category_id: int = Field(alias="categoryId", ge=-(2**63), lt=2**63)
    status: Status = Status.AVAILABLE


class PetChange(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str = Field(None, min_length=1, max_length=255)
    category_id: int = Field(None, alias="categoryId", ge=-(2**63), lt=2**63)
    status: Status = None


class NewOrder(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    pet_id: int = Field(alias="petId", ge=1, lt=2**63)
    quantity: int = Field(1, ge=1, le=1)


class Order(BaseModel):
    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    id: int
    pet_id: int = Field(alias="petId")
    quantity: int = 1
    status: str
    complete: bool = False


class Pet(BaseModel):
    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    id: int
    name: str
    category_id: int = Field(alias="categoryId")
    status: Status


async def session() -> AsyncIterator[AsyncSession]:
    async with sessions() as opened:
        yield opened


Session = Annotated[AsyncSession, Depends(session)]
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(HTTPBearer(auto_error=False))]


async def authenticate(request: Request, database: Session, credentials: Credentials) -> None:
    """Let only valid keys pass, and note for the limiter whose it is."""
    if credentials is not None:
        digest = hashlib.sha256(credentials.credentials.encode()).digest()
        key = await database.scalar(select(ApiKeyRow).where(ApiKeyRow.digest == digest))
        expired = key and key.expires_at_ms is not None and key.expires_at_ms <= time.time() * 1_000
        if key and key.revoked_at_ms is None and not expired:
            request.state.account = str(key.account_id)
            return
    raise HTTPException(401, "The API key is missing or invalid.", {"WWW-Authenticate": "Bearer"})


limiter = Limiter(key_func=lambda request: request.state.account, headers_enabled=True)
limited = limiter.shared_limit(LIMITS, scope="account")

app = FastAPI(dependencies=[Depends(authenticate)])
app.state.limiter = limiter
app.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)


@app.get("/v1/pets", response_model=list[Pet])
@limited
async def list_pets(
    request: Request,
    response: Response,
    database: Session,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    status: Status | None = None,
) -> Any:
    query = select(PetRow).order_by(PetRow.id).limit(limit)
    if status is not None:
        query = query.where(PetRow.status == status.value)
    return (await database.scalars(query)).all()


@app.post("/v1/pets", response_model=Pet, status_code=201)
@limited
async def create_pet(request: Request, response: Response, database: Session, new: NewPet) -> Any:
    pet = PetRow(name=new.name, category_id=new.category_id, status=new.status.value)
    database.add(pet)
    await database.commit()
    response.headers["Location"] = f"/v1/pets/{pet.id}"
    return pet


@app.patch("/v1/pets/{pet_id}", response_model=Pet)
@limited
async def change_pet(
    request: Request, response: Response, database: Session, pet_id: int, change: PetChange
) -> Any:
    pet = await database.get(PetRow, pet_id)
    if pet is None:
        raise HTTPException(404, f"There is no animal {pet_id}.")
    for name, value in change.model_dump(exclude_unset=True).items():
        setattr(pet, name, value)
    await database.commit()
    await database.refresh(pet)
    return pet


@app.post("/v1/store/orders", response_model=Order, status_code=201)
@limited
async def place_order(request: Request, response: Response, database: Session, new: NewOrder) -> Any:
    is_available = (PetRow.id == new.pet_id) & (PetRow.status == Status.AVAILABLE.value)
    reserved = await database.execute(update(PetRow).where(is_available).values(status=Status.PENDING.value))
    if reserved.rowcount == 0:
        raise HTTPException(409, f"Animal {new.pet_id} can't be ordered.")
    account_id, now_ms = int(request.state.account), int(time.time() * 1_000)
    order = OrderRow(account_id=account_id, pet_id=new.pet_id, status="placed", created_at_ms=now_ms)
    database.add(order)
    await database.commit()
    response.headers["Location"] = f"/v1/store/orders?id={order.id}"
    return order
