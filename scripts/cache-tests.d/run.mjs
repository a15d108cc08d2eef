// run.mjs --suite DIR --proxy URL --origin URL --expected FILE --results FILE [--update] [--only ID]
//
// Runs the tests of the suite that aren't for browsers only, against a proxy. Writes each one's result to --results, prints
// the counts and what failed, and holds them against the tests that have to pass. Exit status: 0 as expected, 1 where a test
// fails that has to pass, 3 where nothing could be tested.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const CHUNK_TESTS = 50
// A test that has to pass and didn't, or that saw a request twice, is run again by itself: its pauses are of the wall
// clock, and a machine that is busy can be too late for them.
const ATTEMPTS_MAX = 3
const KINDS = ['required', 'optimal', 'check']

const { values: options } = parseArgs({
  options: {
    suite: { type: 'string' },
    proxy: { type: 'string' },
    origin: { type: 'string' },
    expected: { type: 'string' },
    results: { type: 'string' },
    update: { type: 'boolean', default: false },
    only: { type: 'string' }
  }
})

const suiteFolder = path.resolve(options.suite)
const part = file => import(new URL(file, pathToFileURL(suiteFolder + '/')))
const config = await part('client/config.mjs')
const { makeCacheTest, testResults } = await part('client/test.mjs')
const { default: groups } = await part('tests/index.mjs')
const fetch = createRequire(path.join(suiteFolder, 'package.json'))('node-fetch')
const { name, version } = JSON.parse(fs.readFileSync(path.join(suiteFolder, 'package.json'), 'utf8'))

const tests = new Map()
for (const group of groups) {
  for (const test of group.tests) {
    if (!test.browser_only) tests.set(test.id, { kind: 'required', group: group.id, ...test })
  }
}

config.setBaseUrl(options.proxy)
// What a test is about, and what the origin saw of it, goes past the proxy: it is no part of the test.
config.setFetch((url, init) => {
  const { pathname } = new URL(url)
  const isTest = pathname.startsWith('/test/')
  return fetch(isTest ? url : options.origin + pathname, init)
})

// Running a test fills its dates in, so that each attempt has a copy of its own.
function attempt (id) {
  delete testResults[id]
  return makeCacheTest(JSON.parse(JSON.stringify(tests.get(id))))
}

async function runAll (ids, mustPass) {
  for (let at = 0; at < ids.length; at += CHUNK_TESTS) {
    await Promise.all(ids.slice(at, at + CHUNK_TESTS).map(attempt))
  }
  const late = []
  for (const id of ids) {
    for (let count = 1; count < ATTEMPTS_MAX && isWorthAnother(id, mustPass); count++) {
      await attempt(id)
      if (testResults[id] === true) late.push(id)
    }
  }
  return late
}

function isWorthAnother (id, mustPass) {
  const result = testResults[id]
  return result !== true && (mustPass.has(id) || result[1] === 'retry')
}

const hasPassed = id => testResults[id] === true

// Some tests mean nothing where another one fails: what is never stored, for instance, is never stale.
function isHollow (id) {
  return (tests.get(id).depends_on || []).some(other => !hasPassed(other) || isHollow(other))
}

function idsOf (kind, filter = () => true) {
  return [...tests.keys()].filter(id => tests.get(id).kind === kind && id in testResults && filter(id)).sort()
}

function printCounts () {
  for (const kind of KINDS) {
    const passed = idsOf(kind, hasPassed)
    if (idsOf(kind).length === 0) continue
    const hollow = passed.filter(isHollow).length
    const words = kind === 'check' ? 'say yes (neither is wrong)' : 'pass'
    const but = hollow > 0 ? `, ${hollow} of them resting on others that fail` : ''
    console.log(`${kind.padEnd(9)} ${passed.length} of ${idsOf(kind).length} ${words}${but}`)
  }
}

function printFailed (kind) {
  const [impossible, failed] = [[], []]
  for (const id of idsOf(kind, id => !hasPassed(id))) (id in expected.impossible ? impossible : failed).push(id)
  if (failed.length > 0) console.log(`\n${kind}, failed:`)
  for (const id of failed) console.log(`  ${id}: ${tests.get(id).name}\n      ${testResults[id].join(': ')}`)
  if (impossible.length > 0) console.log(`\n${kind}, failed as they have to:`)
  for (const id of impossible) console.log(`  ${id}: ${expected.impossible[id]}`)
}

function writeJson (file, value) {
  fs.writeFileSync(file, JSON.stringify(value, null, 2) + '\n')
}

// `impossible` names tests that no cache can pass, with the reason.
const expected = JSON.parse(fs.readFileSync(options.expected, 'utf8'))
const mustPass = new Set([...expected.required, ...expected.optimal])
if (options.only !== undefined && !tests.has(options.only)) {
  console.error(`cache-tests: no test ${options.only}; the names stand in the results of a whole run`)
  process.exit(2)
}

const started = Date.now()
const ids = options.only === undefined ? [...tests.keys()] : [options.only]
const late = await runAll(ids, mustPass)
const results = Object.fromEntries(ids.sort().map(id => [id, testResults[id]]))
writeJson(options.results, results)

console.log(`${name} ${version}, ${ids.length} tests in ${Math.round((Date.now() - started) / 1000)} s\n`)
printCounts()
printFailed('required')
if (options.only !== undefined) {
  console.log(`\n${options.only}: ${hasPassed(options.only) ? 'passed' : testResults[options.only].join(': ')}`)
  process.exit(hasPassed(options.only) ? 0 : 1)
}
console.log(`\nall results: ${options.results}`)
if (late.length > 0) console.log(`passed at a later attempt: ${late.join(', ')}`)

const passed = { required: idsOf('required', hasPassed), optimal: idsOf('optimal', hasPassed) }
const unknown = [...mustPass].filter(id => !tests.has(id))
const lost = [...mustPass].filter(id => tests.has(id) && !hasPassed(id)).sort()
const won = [...passed.required, ...passed.optimal].filter(id => !mustPass.has(id)).sort()

if (options.update) {
  writeJson(options.expected, { suite: `${name} ${version}`, impossible: expected.impossible, ...passed })
  const fewer = lost.length + unknown.length
  console.log(`\nwritten: ${options.expected}, ${won.length} tests more, ${fewer} fewer; read the difference`)
  process.exit(0)
}
if (won.length > 0) {
  console.log(`\n${won.length} tests pass that didn't have to; keep them by scripts/cache-tests --update:\n  ${won.join('\n  ')}`)
}
if (lost.length + unknown.length > 0) {
  console.log(`\nFAILED: ${lost.length + unknown.length} tests that have to pass:`)
  for (const id of lost) console.log(`  ${id}: ${testResults[id].join(': ')}`)
  for (const id of unknown) console.log(`  ${id}: is not in this suite`)
  process.exit(1)
}
console.log(`\nall ${mustPass.size} tests passed that have to`)
