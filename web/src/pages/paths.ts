/**
 * All pages: the one table that the router, the navigation, the command palette and the
 * server (which answers with the console at these paths only) are made from. It imports
 * nothing, because the build reads it too.
 */
export type PageName =
  | 'overview'
  | 'proxies'
  | 'proxy'
  | 'newProxy'
  | 'explain'
  | 'log'
  | 'certificates'
  | 'certificate'
  | 'bans'
  | 'lists'
  | 'access'
  | 'history'
  | 'revision'
  | 'ports'
  | 'streams'
  | 'stream'
  | 'discovery'
  | 'charts'
  | 'cache'
  | 'import'
  | 'compare'
  | 'cutover'
  | 'operators'
  | 'account'
  | 'nodes'
  | 'notices'
  | 'webhooks'
  | 'settings'

type PagePath = {
  name: PageName
  /** The path; $name is a part that varies. */
  path: string
  /** Where it stands in the navigation; pages without a group are reached from others. */
  group?: 'traffic' | 'look' | 'move' | 'manage'
}

export const pagePaths: PagePath[] = [
  { name: 'overview', path: '/', group: 'traffic' },
  { name: 'proxies', path: '/proxies', group: 'traffic' },
  { name: 'newProxy', path: '/proxies/new' },
  { name: 'proxy', path: '/proxies/$name' },
  { name: 'streams', path: '/streams', group: 'traffic' },
  { name: 'stream', path: '/streams/$kind/$name' },
  { name: 'ports', path: '/ports', group: 'traffic' },
  { name: 'certificates', path: '/certificates', group: 'traffic' },
  { name: 'certificate', path: '/certificates/$name' },
  { name: 'access', path: '/access', group: 'traffic' },
  { name: 'bans', path: '/bans', group: 'traffic' },
  { name: 'lists', path: '/lists', group: 'traffic' },
  { name: 'discovery', path: '/discovery', group: 'traffic' },
  { name: 'charts', path: '/charts', group: 'look' },
  { name: 'cache', path: '/cache', group: 'look' },
  { name: 'log', path: '/log', group: 'look' },
  { name: 'explain', path: '/explain', group: 'look' },
  { name: 'history', path: '/history', group: 'look' },
  { name: 'revision', path: '/history/$number' },
  { name: 'import', path: '/import', group: 'move' },
  { name: 'compare', path: '/compare', group: 'move' },
  { name: 'cutover', path: '/cut-over', group: 'move' },
  { name: 'operators', path: '/operators', group: 'manage' },
  { name: 'nodes', path: '/nodes', group: 'manage' },
  { name: 'notices', path: '/notices', group: 'manage' },
  { name: 'webhooks', path: '/webhooks', group: 'manage' },
  { name: 'settings', path: '/settings', group: 'manage' },
  { name: 'account', path: '/account' },
]

/** The first segments of all paths, and those of the pages for who has not signed in. */
export const firstSegments = () => [...new Set([...pagePaths.map((p) => p.path.split('/')[1] ?? ''), 'setup', 'signed-in'])]
