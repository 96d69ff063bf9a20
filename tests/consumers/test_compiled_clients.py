"""Clients in Go and Ruby, made by the guide's commands, compile or load, and work on a real service."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, text_of
from tests.support.machine import program
from tests.support.outside import python_program, run_tool
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("consumers-compiled")]

GUIDE = text_of(ROOT / "src" / "petstore" / "site" / "documents" / "guide.md")
# Both list two animals by their identifiers, read the list to its end in pages of two, and meet a 404.
GO = """
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	shop "used/petstore"
)

func must[T any](value T, _ any, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	configuration := shop.NewConfiguration()
	configuration.Servers = shop.ServerConfigurations{{URL: os.Getenv("BASE")}}
	pets := shop.NewAPIClient(configuration).PetsAPI
	ctx := context.WithValue(context.Background(), shop.ContextAccessToken, os.Getenv("KEY"))
	create := func() int64 {
		return must(pets.CreatePet(ctx).PetDraft(*shop.NewPetDraft("Rex", 7)).Execute()).Id
	}
	ids := []int64{create(), create(), create()}
	listed := must(pets.ListPets(ctx).Id(ids[1:]).Execute())
	walked := must(pets.ListPets(ctx).CategoryId(7).Limit(2).Execute())
	rest := must(pets.ListPets(ctx).CategoryId(7).Limit(2).After(walked[1].Id).Execute())
	walked = append(walked, rest...)
	change := shop.PetChange{Name: shop.PtrString("Bo")}
	_, _, err := pets.UpdatePet(ctx, ids[2]+1000).PetChange(change).Execute()
	var refused *shop.GenericOpenAPIError
	errors.As(err, &refused)
	missing := refused.Model().(shop.Error)
	fmt.Println(len(listed), len(walked), missing.Code, missing.Status)
}
"""
RUBY = """
$LOAD_PATH.unshift("petstore/lib")
require "openapi_client"

config = OpenapiClient::Configuration.default
config.scheme, config.host = ENV.fetch("BASE").chomp("/v1").split("://")
config.base_path = "/v1"
config.access_token = ENV.fetch("KEY")
config.params_encoding = :multi
pets = OpenapiClient::PetsApi.new
ids = Array.new(3) { pets.create_pet(OpenapiClient::NewPet.new(name: "Rex", category_id: 8)).id }
listed = pets.list_pets(id: ids[1..])
walked = pets.list_pets(category_id: 8, limit: 2)
walked += pets.list_pets(category_id: 8, limit: 2, after: walked.last.id)
begin
  pets.update_pet(ids[2] + 1000, OpenapiClient::PetChange.new(name: "Bo"))
rescue OpenapiClient::ApiError => error
  missing = OpenapiClient::Error.build_from_hash(JSON.parse(error.response_body, symbolize_names: true))
end
puts "#{listed.size} #{walked.size} #{missing.code} #{missing.status}"
"""


def test_go_compiles_with_the_guides_option(server: Server, contract: Path, tmp_path: Path) -> None:
    """`NewPet` would be a type and the constructor of `Pet`: with the option no name is declared twice."""
    go = program("go")
    _generate("go", contract, tmp_path)
    # As a package of this module: its own names a host.
    (tmp_path / "petstore" / "go.mod").unlink()
    shutil.rmtree(tmp_path / "petstore" / "test")
    (tmp_path / "go.mod").write_text("module used\n\ngo 1.19\n")
    (tmp_path / "main.go").write_text(GO)
    quiet = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off"}
    address = f"{server.base_url}/v1"
    done = run_tool([go, "run", "."], tmp_path, BASE=address, KEY=server.key, **quiet)
    assert done.stdout == "2 3 not_found 404\n", done.stdout + done.stderr


def test_ruby_loads_with_the_guides_option(server: Server, contract: Path, tmp_path: Path) -> None:
    """Every pattern is one of Ruby's too, every value of an enum has a name, and lists take several
    identifiers with the encoding that the guide names."""
    ruby = program("ruby")
    _generate("ruby", contract, tmp_path)
    [setting] = re.findall(r"`(config\.params_encoding = \S+)`", GUIDE)
    assert setting in RUBY
    (tmp_path / "used.rb").write_text(RUBY)
    done = run_tool([ruby, "used.rb"], tmp_path, BASE=f"{server.base_url}/v1", KEY=server.key)
    assert done.stdout == "2 3 not_found 404\n", done.stdout + done.stderr


def _generate(language: str, contract: Path, folder: Path) -> None:
    """The guide's command for a language."""
    program("java")
    commands = GUIDE.replace("\\\n", "").splitlines()
    [command] = [line for line in commands if f" -g {language} " in line]
    command = re.sub(r"http://\S+", str(contract), command)
    tool, *options = shlex.split(command)
    done = run_tool([python_program(tool), *options], folder)
    assert done.returncode == 0, done.stdout + done.stderr
