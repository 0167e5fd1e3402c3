import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { binary, freePort, until } from './browser.mjs'
import { startDocker } from './docker.mjs'
import { api, ask, findings, open, visit, type World } from './world'

let w: World
let port = 0
let docker: Awaited<ReturnType<typeof startDocker>>
let documents: Server
let document = `version: 1
proxies:
  wiki: {virtual_hosts: [wiki.example.com], routes: [{fixed_response: {status: 200, body: the first}}]}
`
let agent: ChildProcess | undefined
let agentLog = ''

const headgate = (...args: string[]) => execFileSync(binary, [...args, '--config', w.h.config, '--state', join(w.h.dir, 'state')], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })

/** Starts the agent of a machine, with the token that was made for it. */
function startAgent() {
  agentLog = ''
  agent = spawn(binary, ['agent', '--to', w.h.url, '--token-file', join(w.h.dir, 'agent.token'), '--endpoint', docker.endpoint], { stdio: ['ignore', 'ignore', 'pipe'] })
  agent.stderr!.on('data', (d) => (agentLog += d))
}

async function endAgent() {
  if (!agent || agent.exitCode !== null) return
  const ended = new Promise((r) => agent!.once('exit', r))
  agent.kill('SIGKILL')
  await ended
}

/** The card of a provider on the page Discovery. */
const card = (name: string) => w.page.locator('section.card', { has: w.page.getByRole('heading', { name, exact: true }) })

beforeAll(async () => {
  port = await freePort()
  docker = await startDocker([{ name: 'shop', labels: { 'headgate.host': 'shop.far.example', 'headgate.port': String(await freePort()) } }])
  documents = createServer((_, answer) => answer.end(document))
  await new Promise<void>((ready) => documents.listen(0, '127.0.0.1', ready))
  const { port: at } = documents.address() as AddressInfo
  w = await open({
    text: `ports:
  web: {address: "127.0.0.1:${port}", protocol: http}
discovery:
  agent:
    web7: {address: 127.0.0.1, hosts: ["*.far.example"]}
  http:
    team: {url: "http://127.0.0.1:${at}/headgate.yaml", interval: 1s}
`,
  })
})
afterAll(async () => {
  await endAgent()
  await w?.close()
  docker?.close()
  documents?.close()
})

it('shows what a document of another program defines, and keeps it when the next is rejected', async () => {
  const { page, h } = w
  await until('the first document', async () => (await ask(port, 'wiki.example.com'))[1] === 'the first')
  await visit(page, h, '/discovery')
  const team = card('team')
  await team.getByRole('link', { name: 'wiki' }).waitFor()
  await team.getByText('No issues.').waitFor()
  expect(await findings(page)).toEqual([])

  document = document.replace('the first', 'the second')
  await until('the second document', async () => (await ask(port, 'wiki.example.com'))[1] === 'the second')
  await visit(page, h, '/proxies/wiki')
  expect(await page.getByRole('button', { name: 'Edit', exact: true }).count()).toBe(0)

  document = document.replace('status: 200', 'status: often')
  await visit(page, h, '/discovery')
  const rejected = team.getByText(/the document is not used, the last one stays active: found the string "often", expected a whole number/)
  await rejected.waitFor()
  await team.getByText('routes[0].fixed_response.status', { exact: true }).waitFor()
  await team.getByRole('link', { name: 'wiki' }).waitFor()
  expect(await ask(port, 'wiki.example.com')).toEqual([200, 'the second'])
  expect(await findings(page)).toEqual([])

  document = document.replace('status: often', 'status: 201')
  await until('the third document', async () => (await ask(port, 'wiki.example.com'))[0] === 201)
  await visit(page, h, '/discovery')
  await team.getByText('No issues.').waitFor()
  expect(await rejected.count()).toBe(0)
})

it('shows the containers of another machine while its agent reports them', async () => {
  const { page, h } = w
  writeFileSync(join(h.dir, 'agent.token'), headgate('agent', 'invite', 'web7'), { mode: 0o600 })
  startAgent()
  await until('the proxy of the container', async () => (await api(page, 'GET', '/proxies/shop')).status === 200)
  await visit(page, h, '/discovery')
  const web7 = card('web7')
  await web7.getByText('running', { exact: true }).waitFor()
  await web7.getByText('container shop@web7').waitFor()
  expect(await findings(page)).toEqual([])

  await endAgent()
  await web7.getByText('stale', { exact: true }).waitFor()
  await web7.getByText(/the agent has not reported for 25s/).waitFor()
  await web7.getByRole('link', { name: 'shop' }).waitFor()
  expect((await api(page, 'GET', '/proxies/shop')).status).toBe(200)
  await web7.getByText(/the agent has not reported for 1m0s/).waitFor()
  await web7.getByText('start headgate agent on the machine, with the token of this name').waitFor()
  expect((await api(page, 'GET', '/proxies/shop')).status).toBe(404)
  expect((await ask(port, 'shop.far.example'))[0]).toBe(404)
})

it('takes no reports with a token that was revoked', async () => {
  const { page, h } = w
  startAgent()
  await until('the agent is back', async () => (await api(page, 'GET', '/proxies/shop')).status === 200)
  await visit(page, h, '/operators?tab=tokens')
  await page.getByRole('button', { name: 'Revoke web7' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
  await until('the refusal', async () => agentLog.includes('not accepted'))
})

it('asks no other host and breaks no rule of its policy', () => {
  expect(w.elsewhere).toEqual([])
  expect(w.complaints).toEqual([])
})
