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
const createSchema = {
  body: {
    type: 'object',
    required: ['name', 'categoryId'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 255 },
      categoryId: { type: 'integer' },
      status: { ...status, default: 'available' }
    }
  },
  response: { 201: pet }
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

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close().then(() => database.close()))
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
