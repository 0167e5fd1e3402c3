import { count, many } from './many'

export const ports = {
  lead: 'The addresses where clients connect. A port serves all proxies that do not select other ports.',
  title: 'Ports',
  noneTitle: 'No port yet',
  none: 'Clients cannot connect without a port. Add 0.0.0.0:80 for HTTP and 0.0.0.0:443 for HTTPS, or 8080 and 8443 beside another proxy.',
  connections: (n: number, accepted: number) => `${count(n)} open, ${count(accepted)} since start`,
  attention: 'Not listening',
  hint: 'What to do',
  streamsLead: 'Forward TCP connections and UDP datagrams without interpreting their content.',
  tcp: 'TCP proxies',
  udp: 'UDP proxies',
  noTcp: 'None. A TCP proxy accepts connections at an address and forwards them to servers: databases, mail, or TLS by server name (SNI).',
  noUdp: 'None. A UDP proxy forwards datagrams: DNS, games, telephony.',
  servers: 'Servers',
  notFound: 'No proxy has this name',
  path: 'Path of a connection',
  reset: 'Close connections',
  resetTitle: (name: string) => `Close all connections of ${name}?`,
  resetText: (n: number) =>
    `${n === 0 ? 'No connection is open.' : `${many(n, 'connection')} ${n === 1 ? 'is' : 'are'} closed immediately, including running requests.`} The port keeps listening. The configuration is not changed.`,
  resetDone: 'The connections are closed.',
  client: 'Client',
  listens: 'Address',
  names: 'Names',
  state: 'State',
  where: 'Defined in',
}
