// A Docker engine that is made up: the three calls that discovery makes, over TCP.
import { createServer } from 'node:http'

/** Starts the engine; containers have a name, labels, and maybe a state. They are on the network of the host. */
export async function startDocker(containers) {
  const streams = new Set()
  const server = createServer((rq, answer) => {
    const path = rq.url.replace(/^\/v[\d.]+/, '').split('?')[0]
    answer.setHeader('Api-Version', '1.52')
    answer.setHeader('Content-Type', 'application/json')
    if (path === '/_ping') answer.end('OK')
    else if (path === '/containers/json') answer.end(JSON.stringify(containers.map(told)))
    else if (path === '/events') {
      answer.flushHeaders()
      streams.add(answer)
      answer.on('close', () => streams.delete(answer))
    } else answer.writeHead(403).end('{"message":"not one of the three calls"}')
  })
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready))
  return {
    endpoint: `tcp://127.0.0.1:${server.address().port}`,
    close() {
      for (const s of streams) s.destroy()
      server.close()
      server.closeAllConnections()
    },
  }
}

const told = ({ name, labels, state = 'running' }, i) => ({
  Id: Buffer.from(name).toString('hex').padEnd(64, '0'),
  Names: ['/' + name],
  Image: 'app:1',
  Command: '/app',
  Created: 1_700_000_000 + i,
  Ports: [],
  Labels: labels,
  State: state,
  Status: 'Up 3 seconds',
  HostConfig: { NetworkMode: 'host' },
  NetworkSettings: { Networks: { host: { IPAddress: '', Gateway: '' } } },
  Mounts: [],
})
