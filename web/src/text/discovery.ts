import { count, many } from './many'

export const discovery = {
  lead: 'Objects from Docker and other providers, and what is wrong with them.',
  emptyTitle: 'No provider yet',
  empty:
    'A provider creates proxies from the labels of containers, or from a document that it downloads, and removes them when they are gone there. Add one under docker or http in the discovery settings.',
  issues: 'Issues',
  noIssues: 'No issues.',
  notAsked: 'The provider cannot be reached. The last objects that it provided remain active.',
  since: 'since',
  objects: 'Objects',
  noObjects: 'None. Containers need the label headgate.enable=true, or exposed_by_default.',
  none: 'None.',
  count: (n: number) => many(n, 'object'),
  label: 'Label',
  field: 'Field',
  provider: 'Provider',
  reported: (n: number) => (n === 1 ? 'Discovery reports an issue' : `Discovery reports ${count(n)} issues`),
  moreIssues: (n: number) => `and ${count(n)} more`,
  all: 'Show all',
  takeOver: 'Convert to configuration',
  takeOverText:
    'Discovered objects are read-only: their source defines them. Converting one copies it into your configuration file as it is now, with the current addresses of its servers. The plan is shown first. The configuration file takes precedence over discovery.',
  settings: 'Discovery settings',
  edit: 'Edit settings',
}
