import { Button, Menu } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconChevronDown, IconInfoCircle } from '@tabler/icons-react'
import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { call } from '@/api/client'
import { sentence } from '@/api/problem'
import { all, canEdit, me, objects, proxyStatus, type AnyObject, type ServerStatus } from '@/api/queries'
import type { components } from '@/api/schema'
import { Card, Loading, StateBadge, Tag } from '@/ui/basics'
import { Panel } from '@/ui/Dialog'
import { t } from '@/text'
import { hostPort, reach, type Kind, type Use } from './reach'

type Held = components['schemas']['heldBody']
const words = t.servers
const kinds: Kind[] = ['proxies', 'tcp_proxies', 'udp_proxies']

/** How many proxies are asked how they see the server. */
const most = 20

/** All uses of a server; undefined while they are not known. */
function useReach(server: string): Use[] | undefined {
  const lists = useQueries({ queries: kinds.map((kind) => ({ ...objects(kind), enabled: !!server })) })
  if (!server || lists.some((l) => !l.data)) return undefined
  return reach(server, Object.fromEntries(kinds.map((kind, i) => [kind, lists[i]!.data as AnyObject[]])) as Record<Kind, AnyObject[]>)
}

/** Leads to the panel of a server. */
export const AboutServer = ({ server, open }: { server: string; open: (server: string) => void }) => (
  <button type="button" className="icon-button" aria-label={words.open(server)} title={words.reach} onClick={() => open(server)}>
    <IconInfoCircle size={15} aria-hidden />
  </button>
)

/** One server from its own side: who reaches it, how it stands for each, and taking it out. */
export function ServerPanel({ server, close }: { server: string; close: () => void }) {
  return (
    <Panel opened={!!server} close={close} width={640} title={<bdi>{server}</bdi>}>
      {server && <Inside server={server} />}
    </Panel>
  )
}

function Inside({ server }: { server: string }) {
  const uses = useReach(server)
  const { data: who } = useQuery(me)
  const held = useQuery({ queryKey: ['status', 'held'], queryFn: ({ signal }) => all<Held>('/servers/held', signal).then((p) => p.value), retry: false })
  const names = [...new Set((uses ?? []).filter((u) => u.kind === 'proxies' && u.as !== 'forward_auth').map((u) => u.name))].slice(0, most)
  const live = useQueries({ queries: names.map((n) => proxyStatus(n)) })
  if (!uses) return <Loading />
  const standing = (u: Use): ServerStatus | undefined =>
    live[names.indexOf(u.name)]?.data?.proxies?.[0]?.routes?.find((r) => r.path === u.route)?.servers?.find((s) => hostPort(s.url) === hostPort(u.address))
  const hold = (u: Use) => (held.data ?? []).find((h) => h.proxy === u.name && h.kind === u.kind && hostPort(h.server ?? '') === hostPort(u.address) && h.hold !== 'enabled')
  return (
    <div className="stack">
      <Card title={words.reach}>
        <p className="small lead">{words.reachLead}</p>
        <ul className="rows">
          {uses.map((u, i) => {
            const now = standing(u)
            const h = hold(u)
            return (
              <li key={i} className="entry">
                <span className="entry-name">
                  <Where use={u} /> {u.route && <code>{u.route}</code>} {u.as !== 'server' && <Tag>{words.as[u.as]}</Tag>}
                  <span className="small block">{u.hosts.length ? u.hosts.slice(0, 3).join(', ') + (u.hosts.length > 3 ? ' ' + t.proxies.more(u.hosts.length - 3) : '') : words.anyHost}</span>
                  {h && (
                    <span className="small block">
                      {words.held(h.hold!, h.who ?? '')}
                      {h.why ? `: ${h.why}` : ''}
                    </span>
                  )}
                  {!h && now?.reason && now.state !== 'healthy' && <span className="small block">{now.reason}</span>}
                </span>
                {now && <StateBadge state={now.state} />}
                {canEdit(who?.role) && u.as !== 'forward_auth' && u.as !== 'mirror' && <Take use={u} held={!!h} />}
              </li>
            )
          })}
        </ul>
      </Card>
      <div className="ask">
        {uses.length > 0 && (
          <Button component={Link} to="/proxies" search={{ q: `server:${hostPort(server)}` } as never} variant="default">
            {words.show(new Set(uses.map((u) => u.kind + u.name)).size)}
          </Button>
        )}
        <Button component={Link} to="/log" search={{ server: hostPort(server) } as never} variant="default">
          {words.log}
        </Button>
        {/^https?:/.test(server) && (
          <Button component="a" href={server} target="_blank" rel="noreferrer" variant="default">
            {words.visit}
          </Button>
        )}
      </div>
    </div>
  )
}

const Where = ({ use: u }: { use: Use }) =>
  u.kind === 'proxies' ? (
    <Link to="/proxies/$name" params={{ name: u.name }}>
      <bdi>{u.name}</bdi>
    </Link>
  ) : (
    <Link to="/streams/$kind/$name" params={{ kind: u.kind.slice(0, 3), name: u.name }}>
      <bdi>{u.name}</bdi>
    </Link>
  )

/** Takes the server out of one proxy, or puts it back: at once, without a change of the document. */
function Take({ use: u, held }: { use: Use; held: boolean }) {
  const queries = useQueryClient()
  async function go(what: 'drain' | 'disable' | 'enable') {
    try {
      await call('POST', `/servers/${what}`, { body: { proxy: u.name, kind: u.kind, server: u.address } })
      notifications.show({ message: words.done[what], color: 'teal' })
    } catch (e) {
      notifications.show({ message: sentence(e), color: 'red' })
    } finally {
      for (const key of ['status', 'objects', 'object']) void queries.invalidateQueries({ queryKey: [key] })
    }
  }
  const item = (what: 'drain' | 'disable' | 'enable', help: string) => (
    <Menu.Item onClick={() => void go(what)}>
      {words[what]}
      <span className="small block">{help}</span>
    </Menu.Item>
  )
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <Button size="compact-sm" variant="default" rightSection={<IconChevronDown size={13} aria-hidden />} aria-label={`${words.work}: ${u.name} ${u.route ?? ''}`}>
          {words.work}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{words.workLead}</Menu.Label>
        {held && item('enable', words.enableHelp)}
        {item('drain', words.drainHelp)}
        {item('disable', words.disableHelp)}
      </Menu.Dropdown>
    </Menu>
  )
}
