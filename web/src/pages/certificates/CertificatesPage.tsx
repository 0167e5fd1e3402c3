import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { failed } from '@/api/problem'
import { objects, status } from '@/api/queries'
import { Entries } from '@/edit/Entries'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Empty, Failure, Loading, PageHeader } from '@/ui/basics'
import { withOffset } from '@/ui/time'
import { t } from '@/text'
import { CertificateBadge } from './CertificateBadge'
import { Stored } from './Stored'
import { orders, rowsOf, type Row } from './orders'

/** Where a certificate comes from, in words. */
const sourceOf = (r: Row) => [r.entry ? t.certificates.acme(r.entry) : t.certificates.own, r.onDemand && t.certificates.onDemand].filter(Boolean).join(', ')

const searchable = (r: Row) => ({ '': [r.name, ...r.hosts, r.entry, r.onDemand && t.certificates.onDemand].join(' '), state: r.state, host: r.hosts.join(' '), entry: r.entry ?? '' })

/** States in the order of what needs attention first. */
const urgency = ['expired', 'missing', 'failed', 'blocked', 'expiring', 'ordering', 'waiting', 'valid']

/** What a row says beside its first host: a name of its own, and how many more hosts there are. */
const more = (r: Row) => [!r.acme && r.name !== r.hosts[0] && r.name, r.hosts.length > 1 && t.proxies.more(r.hosts.length - 1)].filter(Boolean).join(', ')

/** Every certificate with the hosts that get it, and the entries that make them. */
export default function CertificatesPage() {
  const list = useQuery(orders)
  const all = useQuery(status)
  const own = useQuery(objects('certificates'))
  const go = useNavigate()
  const rows = useMemo(() => (all.data ? rowsOf(all.data.certificates ?? [], list.data) : undefined), [list.data, all.data])
  const columns = useMemo<Column<Row>[]>(
    () => [
      {
        id: 'name',
        title: t.certificates.hosts,
        sort: (r) => r.hosts[0] ?? r.name,
        cell: (r) => (
          <>
            {r.acme ? (
              <Link to="/certificates/$name" params={{ name: r.name }} className="row-name clip">
                <bdi>{r.hosts[0] ?? r.name}</bdi>
              </Link>
            ) : (
              <span className="row-name clip">
                <bdi>{r.hosts[0] ?? r.name}</bdi>
              </span>
            )}
            <span className="small clip" title={r.hosts.join('\n')}>
              {r.problem ?? (
                <>
                  {r.daysLeft !== undefined && (
                    <span className="phone-inline">
                      {t.certificates.days(r.daysLeft)}
                      {more(r) && ' · '}
                    </span>
                  )}
                  {more(r)}
                </>
              )}
            </span>
          </>
        ),
      },
      { id: 'state', title: t.certificates.state, width: '130px', sort: (r) => urgency.indexOf(r.state), cell: (r) => <CertificateBadge state={r.state} daysLeft={r.daysLeft} /> },
      {
        id: 'left',
        title: t.certificates.left,
        width: '120px',
        phone: false,
        sort: (r) => r.daysLeft ?? -1e9,
        cell: (r) => <span title={r.notAfter && withOffset(r.notAfter)}>{r.daysLeft === undefined ? t.certificates.noDays : t.certificates.days(r.daysLeft)}</span>,
      },
      {
        id: 'entry',
        title: t.certificates.source,
        width: '18%',
        phone: false,
        from: 960,
        sort: (r) => sourceOf(r),
        cell: (r) => <span className="clip">{sourceOf(r)}</span>,
      },
      { id: 'next', title: t.certificates.nextTry, width: '120px', phone: false, from: 1100, sort: (r) => r.nextTry ?? '', cell: (r) => (r.nextTry ? <Ago time={r.nextTry} /> : '–') },
    ],
    [],
  )
  const error = failed(all)
  return (
    <>
      <PageHeader title={t.pages.certificates} lead={t.certificates.lead} />
      <div className="stack">
        {error ? (
          <Failure
            error={error}
            again={() => {
              void list.refetch()
              void all.refetch()
            }}
          />
        ) : !rows ? (
          <Loading />
        ) : (
          <DataTable
            rows={rows}
            columns={columns}
            id={(r) => `${r.acme} ${r.name}`}
            searchable={searchable}
            noun={[t.certificates.noun, t.certificates.nouns]}
            open={(r) => r.acme && void go({ to: '/certificates/$name', params: { name: r.name } })}
            empty={<Empty title={t.certificates.emptyTitle}>{t.certificates.empty}</Empty>}
          />
        )}
        <Entries
          kind="acme"
          title={t.certificates.accounts}
          lead={t.certificates.accountsLead}
          empty={t.certificates.noAccounts}
          initial={{ directory: 'letsencrypt' }}
          line={(o) => [o.directory ?? 'letsencrypt', o.email].filter(Boolean).join(' · ')}
        />
        <Entries
          kind="certificates"
          title={t.certificates.ownEntries}
          lead={t.certificates.ownLead}
          empty={t.certificates.noOwn}
          line={(o) => String(o.stored ? t.certificates.storedAs(String(o.stored)) : (o.cert_file ?? ''))}
          mark={(o) => {
            const r = rows?.find((x) => !x.acme && x.name === o.name)
            return r && own.data ? <CertificateBadge state={r.state} daysLeft={r.daysLeft} /> : null
          }}
        />
        <Stored />
      </div>
    </>
  )
}
