export const entries = {
  add: 'Add',
  edit: 'Edit',
  goes: 'will be removed',
  /** One object of a kind. */
  noun: { ports: 'port', acme: 'ACME account', certificates: 'certificate', policies: 'policy', webhooks: 'webhook', tcp_proxies: 'TCP proxy', udp_proxies: 'UDP proxy' } as Record<string, string>,
  newTitle: (noun: string) => `New ${noun}`,
  title: (noun: string, name: string) => `${noun.charAt(0).toUpperCase()}${noun.slice(1)} ${name}`,
  newName: 'Name',
  goOn: 'Continue',
  badName: 'Use letters, digits, dots, _ and -; start with a letter or digit.',
  takenName: 'This name is already in use.',
  locked: (why: string) => `It cannot be changed here: ${why}.`,
  discovered: (container: string) => `from container ${container}`,
  actionsTitle: 'Actions',
  actions: (name: string) => `Actions for ${name}`,
}
