import { many } from './many'

export const discovery = {
  lead: 'What Docker and other providers give, and what of it cannot be used.',
  emptyTitle: 'No provider yet',
  empty: 'With a provider, proxies come from the labels of containers and go with them. Add discovery.docker in the settings of discovery.',
  issues: 'Issues',
  noIssues: 'Everything that was found can be used.',
  notAsked: 'What it has is not known while it cannot be reached. What it gave before stays in force.',
  since: 'since',
  objects: 'Objects that it gives',
  noObjects: 'None. Containers need the label headgate.enable=true, or exposed_by_default.',
  count: (n: number) => many(n, 'object'),
  label: 'Label',
  provider: 'Provider',
  reported: (n: number) => (n === 1 ? 'Discovery reports an issue' : `Discovery reports ${n.toLocaleString('en')} issues`),
  moreIssues: (n: number) => `and ${n.toLocaleString('en')} more`,
  all: 'Show all',
  takeOver: 'Take over',
  takeOverText: 'Discovered objects are read-only here: their labels say what they are. Take over puts one into your document as it is now, with the addresses that its servers have. The plan is shown first. What is written by hand wins over what is discovered.',
  settings: 'Settings of discovery',
  edit: 'Edit the settings',
}
