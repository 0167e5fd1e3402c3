export const entries = {
  add: 'Add',
  edit: 'Edit',
  goes: 'to be removed',
  /** One object of a kind. */
  noun: { ports: 'port', acme: 'ACME entry', certificates: 'certificate', policies: 'policy', webhooks: 'webhook', tcp_proxies: 'TCP proxy', udp_proxies: 'UDP proxy' } as Record<string, string>,
  newTitle: (noun: string) => `New ${noun}`,
  title: (noun: string, name: string) => `${noun.charAt(0).toUpperCase()}${noun.slice(1)} ${name}`,
  newName: 'How you call it',
  goOn: 'Go on',
  badName: 'Letters, digits, dots, _ and - only; it begins with a letter or digit.',
  takenName: 'This name is taken.',
  locked: (why: string) => `It cannot be changed here: ${why}.`,
  discovered: (container: string) => `from container ${container}`,
}
