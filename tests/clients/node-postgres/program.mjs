// node-postgres (pg, pg-pool, pg-cursor, pg-query-stream, pg-copy-streams) as programs use it.
// Prints `ok NAME` or `no NAME: WHY`, tab-separated, one line per check, then `end`.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pathToFileURL } from 'node:url'

// The packages lie where they were installed, not beside this file.
const require = createRequire(pathToFileURL((process.env.NODE_CHECKS_MODULES ?? '.') + '/'))
const pg = require('pg')
const Cursor = require('pg-cursor')
const QueryStream = require('pg-query-stream')
const copy = require('pg-copy-streams')

const checks = []
const check = (name, run) => checks.push([name, run])
const same = (got, wanted) => assert.deepEqual(got, wanted)

async function client(options = {}) {
  const c = new pg.Client({ ssl: false, ...options })
  c.on('error', () => {})
  await c.connect()
  return c
}

async function withClient(use, options) {
  const c = await client(options)
  try { return await use(c) } finally { await c.end().catch(() => {}) }
}

async function table(columns, use) {
  await withClient(async c => {
    await c.query('drop table if exists made cascade')
    await c.query(`create table made (${columns})`)
    try { await use(c) } finally {
      await withClient(end => end.query(`select pg_terminate_backend(${c.processID})`).then(() => end.query('drop table if exists made cascade')))
    }
  })
}

async function refused(code, promise, fields = {}) {
  let e
  try { await promise } catch (thrown) { e = thrown }
  if (!e) throw new Error(`not refused with ${code}`)
  if (e.code !== code) throw e
  for (const [name, wanted] of Object.entries(fields)) same([name, e[name]], [name, wanted])
  return e
}

const all = async (c, text, values) => (await c.query({ text, values, rowMode: 'array' })).rows
const one = async (c, text, values) => (await all(c, text, values))[0][0]

check('login: a wrong password, an unknown role and database', async () => {
  await refused('28P01', client({ password: 'wrong' }))
  await refused('28P01', client({ user: 'nobody' }))
  await refused('3D000', client({ database: 'nowhere' }))
})

check('login: TLS, verified', async () => {
  if (!process.env.PGSSLROOTCERT) return
  await withClient(async c => same(await one(c, 'select 1'), 1), { ssl: { ca: readFileSync(process.env.PGSSLROOTCERT) } })
})

check('login: TLS, with channel binding', async () => {
  if (!process.env.PGSSLROOTCERT) return
  await withClient(async c => {
    same(await one(c, 'select 1'), 1)
    same(c.saslSession, null)
  }, { ssl: { ca: readFileSync(process.env.PGSSLROOTCERT) }, enableChannelBinding: true })
})

check('login: settings', () => withClient(async c => {
  same(await one(c, 'show statement_timeout'), '1234ms')
  same(await one(c, 'show lock_timeout'), '99ms')
  same(await one(c, 'show idle_in_transaction_session_timeout'), '1min')
  same(await one(c, 'show application_name'), 'shop')
  same(await one(c, 'show search_path'), 'pg_catalog')
}, { statement_timeout: 1234, lock_timeout: 99, idle_in_transaction_session_timeout: 60000, application_name: 'shop', options: '-c search_path=pg_catalog' }))

const VALUES = [
  ['int2', -5, -5], ['int4', 2 ** 31 - 1, 2 ** 31 - 1], ['int8', '9223372036854775807', '9223372036854775807'], ['float4', 1.5, 1.5], ['float8', 0.1, 0.1],
  ['numeric', '12345678901234567890.123456789', '12345678901234567890.123456789'], ['bool', true, true], ['text', "h\u00e9'llo \\ \n\u20ac", "h\u00e9'llo \\ \n\u20ac"], ['varchar(3)', '', ''],
  ['bytea', Buffer.from([0, 255, 39, 92]), Buffer.from([0, 255, 39, 92])], ['timestamptz', new Date('2024-02-29T12:00:00.123Z'), new Date('2024-02-29T12:00:00.123Z')],
  ['time', '12:34:56.789', '12:34:56.789'], ['uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'], ['json', { a: [1, null] }, { a: [1, null] }],
  ['jsonb', { b: '\u20ac' }, { b: '\u20ac' }], ['int4[]', [1, null, 3], [1, null, 3]], ['text[]', ['a', null, 'q"\\,{}', ''], ['a', null, 'q"\\,{}', '']], ['int4[]', [[1, 2], [3, 4]], [[1, 2], [3, 4]]],
  ['bool[]', [true, null], [true, null]], ['float8[]', [0.5], [0.5]], ['jsonb[]', [{ a: 1 }], [{ a: 1 }]], ['oid', 4294967295, 4294967295],
]

check('values: of every type', () => table(VALUES.map(([kind], i) => `c${i} ${kind}`).join(), async c => {
  for (const [kind, sent, got] of VALUES) {
    same([kind, (await c.query(`select $1::${kind} as v`, [sent])).rows[0].v], [kind, got])
    same((await c.query(`select $1::${kind} as v`, [null])).rows[0].v, null)
  }
  const text = `insert into made values (${VALUES.map((_, i) => '$' + (i + 1))}) returning *`
  same((await all(c, text, VALUES.map(v => v[1])))[0], VALUES.map(v => v[2]))
  same((await c.query("select interval '1 day 02:03:04.5' as v")).rows[0].v.toPostgres(), '4.5 seconds 3 minutes 2 hours 1 days')
}))

check('values: large ones', () => table('id int, v text, raw bytea', async c => {
  const raw = Buffer.alloc(8 << 20, 'ab\0c'), v = 'x\u00e9'.repeat(4 << 20)
  await c.query('insert into made values (1, $1, $2)', [v, raw])
  const row = (await c.query('select v, raw from made')).rows[0]
  assert(row.v === v && row.raw.equals(raw))
}))

check('values: the fields of a result', () => table('id int primary key, v varchar(9)', async c => {
  const result = await c.query('select id, v, 1 + 1 as two from made')
  same(result.fields.map(f => [f.name, f.dataTypeID, f.columnID, f.dataTypeModifier, f.format]), [['id', 23, 1, -1, 'text'], ['v', 1043, 2, 13, 'text'], ['two', 23, 0, -1, 'text']])
  same([result.command, result.rowCount], ['SELECT', 0])
}))

check('prepared: by name, reused, wrongly reused', () => table('id int primary key, v text', async c => {
  for (let i = 0; i < 50; i++) await c.query({ name: 'put', text: 'insert into made values ($1, $2)', values: [i, 'v' + i] })
  same((await c.query({ name: 'get', text: 'select v from made where id = $1', values: [7] })).rows, [{ v: 'v7' }])
  same(await all(c, "select name from pg_prepared_statements where name in ('put', 'get') order by 1"), [['get'], ['put']])
  await refused('22P02', c.query({ name: 'get', text: 'select v from made where id = $1', values: ['x'] }))
  same((await c.query({ name: 'get', text: 'select v from made where id = $1', values: [8] })).rows, [{ v: 'v8' }])
  await refused('08P01', c.query('select $1::int', [1, 2]))
  await refused('42P18', c.query('select $1 is null', [null]))
}))

check('statements: several at once, several results', () => withClient(async c => {
  same((await c.query('select 1 as a; select 2 as b; select 3 as c')).map(r => r.rows[0]), [{ a: 1 }, { b: 2 }, { c: 3 }])
  same(await Promise.all([1, 2, 3].map(i => one(c, 'select $1::int', [i]))), [1, 2, 3])
  same((await c.query('')).rows, [])
  same((await c.query(';')).command, null)
}))

check('rows: a cursor', () => withClient(async c => {
  await c.query('begin')
  const cursor = c.query(new Cursor('select i from generate_series(1, $1::int) i', [1000]))
  same((await cursor.read(10)).length, 10)
  same((await cursor.read(2000)).length, 990)
  same((await cursor.read(1)).length, 0)
  await cursor.close()
  const other = c.query(new Cursor('select i from generate_series(1, 1000000) i'))
  await other.read(5)
  await other.close()
  await c.query('commit')
  same(await one(c, 'select 1'), 1)
  const wrong = c.query(new Cursor('select 1 / (5 - i) from generate_series(1, 10) i'))
  await refused('22012', wrong.read(10))
  same(await one(c, 'select 2'), 2)
}))

check('rows: a stream of many', () => withClient(async c => {
  let sum = 0
  for await (const row of c.query(new QueryStream('select i from generate_series(1, $1::int) i', [100000], { batchSize: 500 }))) sum += row.i
  same(sum, 100000 * 100001 / 2)
  // One that is left early closes its portal.
  for await (const row of c.query(new QueryStream('select i from generate_series(1, 100000) i'))) if (row.i === 5) break
  same(await one(c, 'select 1'), 1)
}))

check('copy: in and out', () => table('id int, v text', async c => {
  const rows = Array.from({ length: 20000 }, (_, i) => `${i}\tv${i}\n`)
  const into = c.query(copy.from('copy made from stdin'))
  await pipeline(Readable.from(rows), into)
  same(into.rowCount, 20000)
  let text = ''
  const out = c.query(copy.to('copy (select * from made order by id) to stdout'))
  for await (const chunk of out) text += chunk
  same(text === rows.join(''), true)
  await refused('22P02', pipeline(Readable.from(['x\ty\n']), c.query(copy.from('copy made from stdin'))), { where: 'COPY made, line 1, column id: "x"' })
  same(await one(c, 'select count(*) from made'), '20000')
  const both = await client()
  const cut = both.query(copy.from('copy made from stdin'))
  cut.on('error', () => {})
  cut.write('1\tx\n')
  cut.destroy()
  await both.end().catch(() => {})
  same(await one(c, 'select count(*) from made'), '20000')
}))

check('transactions: savepoints and retry', () => table('id int primary key, v int', async c => {
  await c.query('begin')
  await c.query('insert into made values (1, 0)')
  await c.query('savepoint a')
  await refused('23505', c.query('insert into made values (1, 0)'))
  await refused('25P02', c.query('select 1'))
  await c.query('rollback to a')
  await c.query('commit')
  await withClient(async other => {
    let tries = 0
    for (;;) {
      tries++
      try {
        await c.query('begin isolation level repeatable read')
        const v = await one(c, 'select v from made where id = 1')
        if (tries === 1) await other.query('update made set v = v + 10')
        await c.query('update made set v = $1 where id = 1', [v + 1])
        await c.query('commit')
        break
      } catch (e) {
        same(e.code, '40001')
        await c.query('rollback')
      }
    }
    same([tries, await one(c, 'select v from made')], [2, 11])
  })
}))

check('notify: between two clients', () => withClient(listener => withClient(async sender => {
  const got = new Promise(resolve => listener.on('notification', m => resolve([m.channel, m.payload, m.processId])))
  await listener.query('listen news')
  await sender.query("select pg_notify('news', 'one')")
  same(await got, ['news', 'one', sender.processID])
})))

check('notices: as events', () => withClient(async c => {
  const got = []
  c.on('notice', n => got.push([n.severity, n.message]))
  await c.query('drop table if exists never_was')
  same(got, [['NOTICE', 'table "never_was" does not exist, skipping']])
}))

check('cancel: pg_cancel_backend, statement_timeout, query_timeout', () => withClient(async c => {
  const running = c.query('select count(*) from generate_series(1, 100000000000)')
  setTimeout(() => withClient(other => other.query('select pg_cancel_backend($1)', [c.processID])), 300)
  await refused('57014', running)
  await c.query('set statement_timeout = 200')
  await refused('57014', c.query('select pg_sleep(60)'))
  same(await one(c, 'select 1'), 1)
}))

check('errors: fields', () => table('id int primary key, n int check (n > 0), p int references made', async c => {
  await c.query('insert into made values (1, 1, null)')
  await refused('42703', c.query('select nosuch from made'), { position: '8', severity: 'ERROR' })
  await refused('23505', c.query('insert into made values ($1, 1, 1)', [1]), { constraint: 'made_pkey', table: 'made', schema: 'public', detail: 'Key (id)=(1) already exists.' })
  await refused('23514', c.query('insert into made values (2, 0, 1)'), { constraint: 'made_n_check' })
  await refused('23503', c.query('insert into made values (2, 1, 5)'), { constraint: 'made_p_fkey' })
  await refused('23502', c.query('insert into made values (null, 1, 1)'), { column: 'id' })
  await refused('42601', c.query('select 1; selec 2; select 3'), { position: '11' })
  same(await one(c, 'select 1'), 1)
}))

check('end: a terminated client', () => withClient(async c => {
  await withClient(other => other.query('select pg_terminate_backend($1)', [c.processID]))
  await new Promise(resolve => setTimeout(resolve, 300))
  await assert.rejects(c.query('select 1'))
}))

check('pool: transactions of many, lost clients replaced', () => table('n int', async c => {
  await c.query('insert into made values (0)')
  const pool = new pg.Pool({ ssl: false, max: 5, application_name: 'pooled', maxUses: 20, connectionTimeoutMillis: 30000 })
  pool.on('error', () => {})
  await Promise.all(Array.from({ length: 100 }, async () => {
    const mine = await pool.connect()
    try {
      await mine.query('begin')
      await mine.query('update made set n = n + $1', [1])
      await mine.query('commit')
    } finally { mine.release() }
  }))
  same(await one(c, 'select n from made'), 100)
  await c.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pooled'")
  await new Promise(resolve => setTimeout(resolve, 300))
  same((await pool.query('select 1 as one')).rows, [{ one: 1 }])
  await pool.end()
}))

const wanted = process.argv.slice(2)
for (const [name, run] of checks) {
  if (wanted.length && !wanted.some(word => name.includes(word))) continue
  const began = Date.now()
  let timer
  try {
    await Promise.race([run(), new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('still running after 60 s')), 60000) })])
    console.log(`ok\t${name}\t${((Date.now() - began) / 1000).toFixed(2)}`)
  } catch (e) {
    console.log(`no\t${name}\t${`${e.name}: ${e.message}`.replace(/\s+/g, ' ').slice(0, 600)}`)
    console.error(e)
  } finally { clearTimeout(timer) }
}
console.log('end')
process.exit(0)
