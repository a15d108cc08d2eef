// origin.mjs SUITE: the suite's origin server, on a free port of the loopback interface; prints its address.
//
// The suite's own server.mjs listens on all interfaces and serves the files of its folder. This one has the same handlers,
// but for files.
import http from 'node:http'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const suite = pathToFileURL(path.resolve(process.argv[2]) + '/')
const { sendResponse } = await import(new URL('server/utils.mjs', suite))
const handlers = new Map()
for (const name of ['config', 'state', 'test']) {
  handlers.set(name, (await import(new URL(`server/handle-${name}.mjs`, suite))).default)
}

const say = console.log
// What the handlers print is of no use here, and would end in a pipe that nobody reads.
console.log = () => {}

const server = http.createServer((request, response) => {
  const [, name, ...rest] = new URL(request.url, 'http://localhost/').pathname.split('/')
  const handler = handlers.get(name)
  if (handler) handler(rest, request, response)
  else sendResponse(response, 404, `${request.url} Not Found`)
})
server.listen(0, '127.0.0.1', () => say(`origin on http://127.0.0.1:${server.address().port}`))
