import { Button, Select, Switch, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { Problem, sentence, Unreachable } from '@/api/problem'
import { Card, Empty, Failure, Loading, PageHeader } from '@/ui/basics'
import { t } from '@/text'
import { addressOf, bodyOf, type Asked, type Explanation } from './explanation'
import { Explained } from './Explained'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** What becomes of a request: asked by its address, which stands in that of the page. */
export default function ExplainPage() {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const text = (name: string) => (search[name] === undefined ? '' : String(search[name]))
  const asked: Asked = { url: text('url'), method: text('method') || 'GET', from: text('from'), headers: text('headers'), http3: text('http3') === 'true', as: text('as') }
  const [form, setForm] = useState(asked)
  const [wrong, setWrong] = useState('')
  const go = useNavigate()
  const key = JSON.stringify(asked)
  // Back, and a link from elsewhere, change the address.
  useEffect(() => setForm(JSON.parse(key) as Asked), [key])
  const answer = useQuery({
    queryKey: ['explain', bodyOf(asked)],
    queryFn: ({ signal }) => call<Explanation>('POST', '/explain', { body: bodyOf(asked), signal }).then((e) => e.value),
    enabled: !!addressOf(asked.url),
    gcTime: 60_000,
  })
  const mistakes = answer.error instanceof Problem && answer.error.status < 500 ? answer.error.mistakes : []
  const at = (field: string) =>
    mistakes
      .filter((m) => m.pointer.startsWith(field))
      .map((m) => (m.remedy ? `${m.detail}; ${m.remedy}` : m.detail))
      .join('. ') || undefined
  const elsewhere = answer.error && (answer.error instanceof Unreachable || !['/url', '/from', '/as', '/headers', '/method'].some((f) => at(f)))

  function submit(e: FormEvent) {
    e.preventDefault()
    const url = addressOf(form.url)
    setWrong(url ? '' : t.explain.bad)
    if (!url) return
    if (JSON.stringify({ ...form, url }) === key) void answer.refetch()
    void go({
      to: '/explain',
      search: {
        url,
        method: form.method === 'GET' ? undefined : form.method,
        from: form.from || undefined,
        as: form.as.trim() || undefined,
        headers: form.headers || undefined,
        http3: form.http3 || undefined,
      } as never,
    })
  }

  return (
    <>
      <PageHeader title={t.pages.explain} lead={t.explain.lead} />
      <div className="stack">
        <form className="card" onSubmit={submit} noValidate>
          <div className="card-body fields">
            <div className="ask">
              <Select label={t.explain.method} data={methods} value={form.method} onChange={(v) => setForm({ ...form, method: v ?? 'GET' })} allowDeselect={false} w={112} error={at('/method')} />
              <TextInput
                label={t.explain.url}
                placeholder="https://shop.example.com/api"
                value={form.url}
                onChange={(e) => setForm({ ...form, url: e.currentTarget.value })}
                error={wrong || at('/url')}
                autoFocus
                autoComplete="off"
                spellCheck={false}
                inputMode="url"
                style={{ flex: '1 1 220px' }}
              />
              <Button type="submit" loading={answer.isFetching}>
                {t.explain.go}
              </Button>
            </div>
            <details open={!!(asked.as || asked.from || asked.headers || asked.http3) || undefined}>
              <summary>{t.explain.more}</summary>
              <div className="fields" style={{ paddingTop: 12 }}>
                <TextInput
                  label={t.explain.as}
                  description={t.explain.asHelp}
                  value={form.as}
                  error={at('/as')}
                  onChange={(e) => setForm({ ...form, as: e.currentTarget.value })}
                  autoComplete="off"
                  spellCheck={false}
                  maw={420}
                />
                <TextInput
                  label={t.explain.from}
                  description={t.explain.fromHelp}
                  placeholder="203.0.113.7"
                  value={form.from}
                  error={at('/from')}
                  onChange={(e) => setForm({ ...form, from: e.currentTarget.value })}
                  maw={420}
                />
                <Textarea
                  label={t.explain.headers}
                  description={t.explain.headersHelp}
                  placeholder="accept: text/html"
                  value={form.headers}
                  error={at('/headers')}
                  onChange={(e) => setForm({ ...form, headers: e.currentTarget.value })}
                  autosize
                  minRows={2}
                  maxRows={8}
                />
                <Switch label={t.explain.http3} checked={form.http3} onChange={(e) => setForm({ ...form, http3: e.currentTarget.checked })} />
              </div>
            </details>
          </div>
        </form>
        {!addressOf(asked.url) ? (
          <Card>
            <Empty title={t.explain.emptyTitle}>{t.explain.empty}</Empty>
          </Card>
        ) : answer.data ? (
          <Explained it={answer.data} />
        ) : elsewhere ? (
          <Failure error={answer.error} again={() => void answer.refetch()} />
        ) : answer.error ? (
          <p role="alert" className="small">
            {sentence(answer.error)}
          </p>
        ) : (
          <Loading />
        )}
      </div>
    </>
  )
}
