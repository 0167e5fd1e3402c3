import { expect, it, vi } from 'vitest'
import { send } from './client'
import { Late } from './problem'

it('waits for an answer until its deadline, and says so', async () => {
  vi.stubGlobal('fetch', (_: Request, { signal }: { signal: AbortSignal }) => new Promise((_, refuse) => signal.addEventListener('abort', () => refuse(signal.reason))))
  const asked = send(new Request('http://headgate.test/api/v1/proxies'), 1)
  await expect(asked).rejects.toThrow(Late)
  await expect(asked).rejects.toThrow('headgate did not respond within 0.001 s.')
})

it('waits for the body, too', async () => {
  vi.stubGlobal('fetch', (_: Request, { signal }: { signal: AbortSignal }) => {
    const body = new ReadableStream({ start: (c) => signal.addEventListener('abort', () => c.error(signal.reason)) })
    return Promise.resolve(new Response(body))
  })
  await expect(send(new Request('http://headgate.test/api/v1/proxies'), 1)).rejects.toThrow(Late)
})
