import { Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { sentence } from '@/api/problem'
import type { components } from '@/api/schema'
import { Ago, Card, KeyValues, Tag } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'

type Known = components['schemas']['addressBody']
const words = t.lists

/** What is known of an address: its lists, its bans, where it is. The address is in that of the page. */
export function AddressCheck() {
  const [address, setAddress] = useView('address')
  const [text, setText] = useState(address)
  const known = useQuery({
    queryKey: ['addresses', address],
    queryFn: () => call<Known>('GET', `/addresses/${encodeURIComponent(address)}`).then((x) => x.value),
    enabled: address !== '',
    retry: false,
  })
  function submit(e: FormEvent) {
    e.preventDefault()
    if (text.trim() === address) void known.refetch()
    setAddress(text.trim())
  }
  return (
    <Card title={words.checkTitle}>
      <form onSubmit={submit} className="ask" noValidate style={{ alignItems: 'flex-end' }}>
        <TextInput
          label={words.address}
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
          error={known.error ? sentence(known.error) : undefined}
          placeholder="203.0.113.9"
          autoComplete="off"
          spellCheck={false}
          style={{ flex: '1 1 220px', maxWidth: 380 }}
        />
        <Button type="submit" variant="default" loading={known.isFetching} disabled={!text.trim()}>
          {words.check}
        </Button>
      </form>
      <div role="status" style={{ marginTop: 12 }}>
        {known.data && !known.error && <Facts of={known.data} />}
      </div>
    </Card>
  )
}

const Facts = ({ of: a }: { of: Known }) => (
  <KeyValues
    rows={[
      [
        words.in,
        a.lists?.length ? (
          <span key="in" className="tags">
            {a.lists.map((l) => (
              <Tag key={l}>
                <bdi>{l}</bdi>
              </Tag>
            ))}
          </span>
        ) : (
          words.inNone
        ),
      ],
      [
        words.bans,
        a.bans?.length ? (
          <span key="bans">
            {a.bans.map((b) => (
              <span key={b.network + b.source!} className="block">
                <Link to="/bans" search={{ q: b.network } as never}>
                  {b.network}
                </Link>{' '}
                {words.banned(b.rule ?? '')}
                {b.why && `: ${b.why}`}, {words.ends} <Ago time={b.until!} />
              </span>
            ))}
          </span>
        ) : (
          words.notBanned
        ),
      ],
      ...(a.country ? ([[words.country, a.country]] as [string, string][]) : []),
      ...(a.asn ? ([[words.network, `AS${a.asn}`]] as [string, string][]) : []),
      ...(a.protected ? ([[words.protected, words.protectedBy(a.protected)]] as [string, string][]) : []),
    ]}
  />
)
