import { execFile } from 'node:child_process'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { binary, freePort } from './browser.mjs'
import { api, findings, open, visit, type World } from './world'

let w: World
let echo: Server
let client: Socket
let serving = 0 // the process that has replaced the first one
beforeAll(async () => {
  const port = await freePort()
  echo = createServer((s) => s.on('error', () => {}).pipe(s)).listen(0, '127.0.0.1')
  await new Promise((ready) => echo.once('listening', ready))
  w = await open({ text: `tcp_proxies:\n  line: {address: "127.0.0.1:${port}", servers: [{address: "127.0.0.1:${(echo.address() as AddressInfo).port}"}]}\n` })
  client = await new Promise<Socket>((ready) => {
    const s = connect(port, '127.0.0.1', () => s.write('hello'))
    s.on('error', () => {})
    s.once('data', () => ready(s))
  })
})
afterAll(async () => {
  client?.destroy()
  if (serving) process.kill(serving, 'SIGKILL')
  await w?.close()
  echo?.close()
})

it('shows the version, the generation, and the connections that the replaced process still has', async () => {
  const { page, h } = w
  await visit(page, h, '/')
  const instance = page.locator('.card', { has: page.getByRole('heading', { name: 'This instance' }) })
  const value = (name: string) => instance.locator('dt', { hasText: name }).locator('xpath=following-sibling::dd[1]')
  expect(await value('Generation').innerText()).toBe('1')
  const old = await value('Process').innerText()
  const { stdout } = await promisify(execFile)(binary, ['upgrade', '--state', join(h.dir, 'state'), '-o', 'json'])
  const done = JSON.parse(stdout) as { pid: number; version: string }
  serving = done.pid
  await value('Generation').getByText('2').waitFor()
  expect(await value('Version').innerText()).toBe(done.version)
  await instance.getByText(`${done.version}, process ${old}, still has 1 connection`).waitFor()
  expect(await findings(page)).toEqual([])
  // The connection works, and its end is the end of the process.
  const again = new Promise((got) => client.once('data', (d) => got(String(d))))
  client.write('again')
  expect(await again).toBe('again')
  client.destroy()
  await instance.getByText('Replaced process').waitFor({ state: 'detached' })
  expect((await api<{ process: { generation: number } }>(page, 'GET', '/status?proxies=false')).value.process.generation).toBe(2)
})
