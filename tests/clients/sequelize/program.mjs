// Sequelize as programs use it: models, associations, transactions, changes of tables, what it reads of the catalogs.
// Prints `ok NAME` or `no NAME: WHY`, tab-separated, one line per check, then `end`.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

// The packages lie where they were installed, not beside this file.
const require = createRequire(pathToFileURL((process.env.NODE_CHECKS_MODULES ?? '.') + '/'))
const { Sequelize, DataTypes, Op, Transaction, UniqueConstraintError } = require('sequelize')

const { PGHOST = '127.0.0.1', PGPORT = '5432', PGDATABASE = 'postgres', PGUSER = 'postgres', PGPASSWORD = '' } = process.env
const checks = []
const check = (name, run) => checks.push([name, run])
const same = (got, wanted) => assert.deepEqual(got, wanted)

async function connected(use, options = {}) {
  const db = new Sequelize(PGDATABASE, PGUSER, PGPASSWORD, { host: PGHOST, port: Number(PGPORT), dialect: 'postgres', logging: false, ...options })
  try {
    await db.query('drop schema if exists sequelize_checks cascade')
    await db.query('create schema sequelize_checks')
    return await use(db)
  } finally {
    await db.query('drop schema if exists sequelize_checks cascade')
    await db.close()
  }
}

function models(db) {
  const options = { schema: 'sequelize_checks' }
  const Person = db.define('Person', {
    name: { type: DataTypes.STRING(40), allowNull: false, unique: true },
    mood: { type: DataTypes.ENUM('calm', 'loud'), defaultValue: 'calm' },
    facts: DataTypes.JSONB,
    tags: DataTypes.ARRAY(DataTypes.TEXT),
    born: DataTypes.DATE,
    balance: { type: DataTypes.DECIMAL(12, 2), defaultValue: 0 },
  }, options)
  const Pet = db.define('Pet', { id: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, primaryKey: true }, name: DataTypes.STRING }, { ...options, indexes: [{ fields: ['name'] }] })
  Person.hasMany(Pet, { foreignKey: 'owner', onDelete: 'CASCADE' })
  Pet.belongsTo(Person, { foreignKey: 'owner' })
  return { Person, Pet }
}

check('models made, filled and asked', () => connected(async db => {
  const { Person, Pet } = models(db)
  await db.sync()
  const ada = await Person.create({ name: 'ada', facts: { born: 1815, of: { city: 'London' } }, tags: ['a', 'b'], born: new Date('2024-02-03T04:05:06.789Z') })
  await Person.bulkCreate([...Array(20).keys()].map(i => ({ name: `p${i}`, balance: i })))
  await Pet.bulkCreate([{ name: 'rex', owner: ada.id }, { name: 'tom', owner: ada.id }])
  const found = await Person.findOne({ where: { facts: { of: { city: 'London' } }, tags: { [Op.contains]: ['a'] } }, include: Pet })
  same([found.Pets.length, found.born.toISOString(), found.mood], [2, '2024-02-03T04:05:06.789Z', 'calm'])
  same(await Person.sum('balance'), 190)
  same((await Person.findAll({ where: { balance: { [Op.gt]: 5 } }, order: [['balance', 'DESC']], limit: 2, offset: 1 })).map(p => p.name), ['p18', 'p17'])
  const { count, rows } = await Person.findAndCountAll({ where: { name: { [Op.iLike]: 'P1%' } }, limit: 3 })
  same([count, rows.length], [11, 3])
  const [changed, [row]] = await Person.update({ mood: 'loud' }, { where: { name: 'p3' }, returning: true })
  same([changed, row.mood], [1, 'loud'])
  await Person.upsert({ name: 'p3', balance: 77 }, { conflictFields: ['name'] })
  same((await Person.findOne({ where: { name: 'p3' } })).balance, '77.00')
  const [, made] = await Person.findOrCreate({ where: { name: 'new' } })
  same(made, true)
  await assert.rejects(Person.create({ name: 'ada' }), e => e instanceof UniqueConstraintError && e.fields.name === 'ada')
  await Person.increment({ balance: 5 }, { where: { name: 'p3' } })
  await ada.destroy()
  same(await Pet.count(), 0)
}))

check('transactions and row locks', () => connected(async db => {
  const { Person } = models(db)
  await db.sync()
  await Person.create({ name: 'one' })
  await assert.rejects(db.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async transaction => {
    await Person.create({ name: 'two' }, { transaction })
    throw new Error('back')
  }), /back/)
  same(await Person.count(), 1)
  await db.transaction(async transaction => {
    const p = await Person.findOne({ where: { name: 'one' }, lock: transaction.LOCK.UPDATE, skipLocked: true, transaction })
    await p.update({ balance: 3 }, { transaction })
  })
  same((await Person.findOne()).balance, '3.00')
}))

check('tables changed and described', () => connected(async db => {
  const { Person, Pet } = models(db)
  await db.sync()
  const tables = db.getQueryInterface()
  const name = { tableName: 'People', schema: 'sequelize_checks' }
  await tables.addColumn(name, 'age', { type: DataTypes.INTEGER, allowNull: false, defaultValue: 7 })
  await tables.changeColumn(name, 'age', { type: DataTypes.BIGINT, allowNull: true })
  await tables.renameColumn(name, 'age', 'years')
  await tables.addIndex(name, ['years', 'name'], { name: 'people_by_years', unique: true })
  await tables.addConstraint(name, { fields: ['years'], type: 'check', where: { years: { [Op.gt]: 0 } }, name: 'grown' })
  const columns = await tables.describeTable(name)
  // The labels come from an array_agg without ORDER BY.
  same([columns.years.type, columns.years.allowNull, columns.id.primaryKey, [...columns.mood.special].sort()], ['BIGINT', true, true, ['calm', 'loud']])
  same((await tables.showIndex(name)).map(i => i.name).includes('people_by_years'), true)
  same((await tables.getForeignKeyReferencesForTable({ tableName: 'Pets', schema: 'sequelize_checks' })).map(k => k.referencedTableName), ['People'])
  await tables.removeConstraint(name, 'grown')
  await db.sync({ alter: true })
  same(await Person.count() + await Pet.count(), 0)
  await db.drop()
}))

check('a time zone of the connection', () => connected(async db => {
  const [[row]] = await db.query("select current_setting('TimeZone') as zone, '2024-01-01 00:00:00+00'::timestamptz::text as at")
  same(row.at, '2024-01-01 05:30:00+05:30')
}, { timezone: '+05:30' }))

const words = process.argv.slice(2)
for (const [name, run] of checks) {
  if (words.length && !words.some(word => name.includes(word))) continue
  const began = performance.now()
  try {
    await run()
    console.log(`ok\t${name}\t${((performance.now() - began) / 1000).toFixed(2)}`)
  } catch (e) {
    console.log(`no\t${name}\t${String(e?.message + ' ' + e?.sql + ' ' + e?.stack).replace(/\s+/g, ' ').slice(0, 1500)}`)
  }
}
console.log('end')
process.exit(0)
