// Adds 200 animals by the TypeScript client, and prints their identifiers.
import { Petstore } from "petstore-client";

const { PETSTORE_URL = "", PETSTORE_KEY = "" } = process.env;
const petstore = new Petstore({ baseUrl: PETSTORE_URL, apiKey: PETSTORE_KEY, tries: 20, seconds: 3600 });

const names = Array.from({ length: 200 }, (_, at) => `Animal ${at}`);
const made = await Promise.all(names.map((name) => petstore.pets.create({ name, categoryId: 77 })));
console.log(JSON.stringify(made.map(({ id }) => id)));
