import { Button } from '@mantine/core'
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link, type ErrorComponentProps } from '@tanstack/react-router'
import { Shell } from './shell/Shell'
import { pagePaths, type PageName } from './pages/paths'
import { Card, Empty, Failure, Loading } from './ui/basics'
import { Problem, Unreachable } from './api/problem'
import { t } from './text'

/** Where each page's code is; it is loaded when somebody goes there. */
const load: Record<PageName, () => Promise<{ default: React.ComponentType }>> = {
  overview: () => import('./pages/overview/OverviewPage'),
  proxies: () => import('./pages/proxies/ProxiesPage'),
  proxy: () => import('./pages/proxies/ProxyPage'),
  newProxy: () => import('./pages/proxies/NewProxyPage'),
  certificates: () => import('./pages/certificates/CertificatesPage'),
  certificate: () => import('./pages/certificates/CertificatePage'),
  access: () => import('./pages/access/AccessPage'),
  bans: () => import('./pages/defence/BansPage'),
  lists: () => import('./pages/defence/ListsPage'),
  history: () => import('./pages/history/HistoryPage'),
  revision: () => import('./pages/history/RevisionPage'),
  ports: () => import('./pages/ports/PortsPage'),
  streams: () => import('./pages/streams/StreamsPage'),
  stream: () => import('./pages/streams/StreamPage'),
  discovery: () => import('./pages/discovery/DiscoveryPage'),
  charts: () => import('./pages/charts/ChartsPage'),
  cache: () => import('./pages/cache/CachePage'),
  import: () => import('./pages/import/ImportPage'),
  compare: () => import('./pages/compare/ComparePage'),
  cutover: () => import('./pages/cutover/CutoverPage'),
  operators: () => import('./pages/operators/OperatorsPage'),
  account: () => import('./pages/account/AccountPage'),
  nodes: () => import('./pages/nodes/NodesPage'),
  notices: () => import('./pages/notices/NoticesPage'),
  webhooks: () => import('./pages/webhooks/WebhooksPage'),
  settings: () => import('./pages/settings/SettingsPage'),
  log: () => import('./pages/log/LogPage'),
  explain: () => import('./pages/explain/ExplainPage'),
}

function Broken({ error, reset }: ErrorComponentProps) {
  if (error instanceof Problem || error instanceof Unreachable) return <Failure error={error} again={reset} />
  return (
    <Card>
      <Empty title={t.problem.broken} action={<Button onClick={() => location.reload()}>{t.problem.reload}</Button>}>
        {t.problem.brokenText} <code>{String(error)}</code>
      </Empty>
    </Card>
  )
}

const NotFound = () => (
  <Card>
    <Empty title={t.problem.notFound} action={<Link to="/">{t.problem.home}</Link>}>
      {t.problem.notFoundText}
    </Empty>
  </Card>
)

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })

const routes = pagePaths.map((p) =>
  createRoute({
    getParentRoute: () => root,
    path: p.path,
    // View state lives in the address: ui/view.ts reads and writes it.
    validateSearch: (search: Record<string, unknown>) => search,
    component: lazyRouteComponent(load[p.name]),
    head: () => ({ meta: [{ title: t.shell.title(t.pages[p.name]) }] }),
  }),
)

export const router = createRouter({
  routeTree: root.addChildren(routes),
  defaultErrorComponent: Broken,
  defaultPendingComponent: Loading,
  defaultPreload: 'intent',
  scrollRestoration: true,
})

// The title of the window is that of the page.
router.subscribe('onResolved', () => {
  const match = router.state.matches.at(-1)
  const page = pagePaths.find((p) => p.path === match?.routeId)
  document.title = page ? t.shell.title(Object.values(match?.params ?? {}).join(' ') || t.pages[page.name]) : t.brand
})
