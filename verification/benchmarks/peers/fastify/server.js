// The same job in Fastify, better-sqlite3 and @fastify/rate-limit, with response schemas.
// PETS_DATABASE=… PORT=… node server.js
import { createHash } from 'node:crypto'

import rateLimit from '@fastify/rate-limit'
import Database from 'better-sqlite3'
import Fastify from 'fastify'

const database = new Database(process.env.PETS_DATABASE, { fileMustExist: true })
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL') // a commit is on the disk before it returns

const columns = 'id, name, category_id AS categoryId, status'
const findKey = database.prepare('SELECT account_id, expires_at_ms, revoked_at_ms FROM api_keys WHERE digest = ?')
const page = database.prepare(`SELECT ${columns} FROM pets ORDER BY id LIMIT ?`)
const pageByStatus = database.prepare(`SELECT ${columns} FROM pets WHERE status = ? ORDER BY id LIMIT ?`)
const add = database.prepare('INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)')
const change = database.prepare(`UPDATE pets SET name = coalesce(?, name), category_id = coalesce(?, category_id),
  status = coalesce(?, status) WHERE id = ? RETURNING ${columns}`)
const reserve = database.prepare("UPDATE pets SET status = 'pending' WHERE id = ? AND status = 'available'")
const addOrder = database.prepare(
  "INSERT INTO orders (account_id, pet_id, status, created_at_ms) VALUES (?, ?, 'placed', ?)")
const place = database.transaction((account, petId) => {
  if (reserve.run(petId).changes === 0) throw refusal(409, `Animal ${petId} can't be ordered.`)
  return addOrder.run(account, petId, Date.now()).lastInsertRowid
})

const status = { type: 'string', enum: ['available', 'pending', 'sold'] }
const pet = {
  type: 'object',
  properties: { id: { type: 'integer' }, name: { type: 'string' }, categoryId: { type: 'integer' }, status }
}
const listSchema = {
  querystring: {
    type: 'object',
    properties: { limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 }, status }
  },
  response: { 200: { type: 'array', items: pet } }
}
const members = { name: { type: 'string', minLength: 1, maxLength: 255 }, categoryId: { type: 'integer' } }
const createSchema = {
  body: {
    type: 'object',
    required: ['name', 'categoryId'],
    additionalProperties: false,
    properties: { ...members, status: { ...status, default: 'available' } }
  },
  response: { 201: pet }
}
const identified = { type: 'object', properties: { petId: { type: 'integer' } } }
const changeSchema = {
  params: identified,
  body: { type: 'object', minProperties: 1, additionalProperties: false, properties: { ...members, status } },
  response: { 200: pet }
}
const quantity = { type: 'integer', minimum: 1, maximum: 1, default: 1 }
const orderSchema = {
  body: {
    type: 'object',
    required: ['petId'],
    additionalProperties: false,
    properties: { petId: { type: 'integer', minimum: 1 }, quantity }
  },
  response: {
    201: {
      type: 'object',
      properties: {
        id: { type: 'integer' },
        petId: { type: 'integer' },
        quantity,
        status: { type: 'string' },
        complete: { type: 'boolean' }
      }
    }
  }
}

function refusal (statusCode, message) {
  return Object.assign(new Error(message), { statusCode })
}

const app = Fastify()
app.decorateRequest('account', null)

app.addHook('onRequest', async (request, reply) => {
  const header = request.headers.authorization ?? ''
  const digest = createHash('sha256').update(header.slice(7)).digest()
  const key = header.startsWith('Bearer ') ? findKey.get(digest) : undefined
  if (key === undefined || key.revoked_at_ms !== null || (key.expires_at_ms ?? Infinity) <= Date.now()) {
    reply.header('www-authenticate', 'Bearer')
    throw refusal(401, 'The API key is missing or invalid.')
  }
  request.account = key.account_id
})

// The plugin keeps one window, which it sets the headers for; the day is a second one.
await app.register(rateLimit, {
  hook: 'preHandler',
  max: 1e9,
  timeWindow: '1 minute',
  keyGenerator: (request) => request.account
})
const takeOfDay = app.createRateLimit({ max: 1e11, timeWindow: '1 day' })
app.addHook('preHandler', async (request) => {
  const day = await takeOfDay(request)
  if (day.isExceeded) throw refusal(429, `Try again in ${day.ttlInSeconds} s.`)
})

app.get('/v1/pets', { schema: listSchema }, (request, reply) => {
  const { limit, status } = request.query
  reply.send(status === undefined ? page.all(limit) : pageByStatus.all(status, limit))
})

app.post('/v1/pets', { schema: createSchema }, (request, reply) => {
  const { name, categoryId, status } = request.body
  const id = add.run(name, categoryId, status).lastInsertRowid
  reply.code(201).header('location', `/v1/pets/${id}`).send({ id, name, categoryId, status })
})

app.patch('/v1/pets/:petId', { schema: changeSchema }, (request, reply) => {
  const { name, categoryId, status } = request.body
  const changed = change.get(name, categoryId, status, request.params.petId)
  if (changed === undefined) throw refusal(404, `There is no animal ${request.params.petId}.`)
  reply.send(changed)
})

app.post('/v1/store/orders', { schema: orderSchema }, (request, reply) => {
  const { petId, quantity } = request.body
  const id = place.immediate(request.account, petId)
  reply.code(201).header('location', `/v1/store/orders?id=${id}`)
    .send({ id, petId, quantity, status: 'placed', complete: false })
})

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close().then(() => database.close()))
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
