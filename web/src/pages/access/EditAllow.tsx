import { Button, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useId, useState, type FormEvent } from 'react'
import { failed, sentence } from '@/api/problem'
import { objectForForm, type AnyObject } from '@/api/queries'
import { basket, plan, put, reviewing } from '@/edit/basket'
import { written, type Value } from '@/edit/object'
import { Failure, Loading } from '@/ui/basics'
import { Wrong } from '@/ui/act'
import { Dialog } from '@/ui/Dialog'
import { t } from '@/text'

const words = t.access

/** Edits who may enter the application of a proxy, where the gate is the proxy's own. */
export function EditAllow({ proxy, close }: { proxy: string; close: () => void }) {
  const read = useQuery(objectForForm('proxies', proxy, useId()))
  return (
    <Dialog close={close} title={words.editAllowOf(proxy)}>
      {failed(read) ? <Failure error={read.error} again={() => void read.refetch()} /> : !read.data ? <Loading /> : <Form o={read.data} close={close} />}
    </Dialog>
  )
}

function Form({ o, close }: { o: AnyObject; close: () => void }) {
  const value = written('proxies', o)
  const gate = value.gate as (Value & { allow?: string[] }) | undefined
  const [allow, setAllow] = useState((gate?.allow ?? []).join('\n'))
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const [busy, setBusy] = useState(false)
  if (!gate?.allow || o.read_only)
    return (
      <p className="lead">
        {words.allowElsewhere}{' '}
        <Link to="/proxies/$name" params={{ name: o.name! }}>
          {o.name}
        </Link>
      </p>
    )
  async function submit(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    const edit = {
      kind: 'proxies',
      name: o.name!,
      op: 'set' as const,
      base: o,
      value: {
        ...value,
        gate: {
          ...gate,
          allow: allow
            .split(/[\n,]+/)
            .map((x) => x.trim())
            .filter(Boolean),
        },
      },
    }
    try {
      await plan([...basket.get(), edit])
      put(edit)
      reviewing.set(true)
      close()
    } catch (error) {
      setWrong({ allow: sentence(error) })
    } finally {
      setBusy(false)
    }
  }
  return (
    <form onSubmit={submit} className="fields" noValidate>
      <Wrong wrong={wrong} fields={['allow']} />
      <Textarea
        label={words.allow}
        description={words.allowHelp}
        value={allow}
        error={wrong.allow}
        onChange={(e) => setAllow(e.currentTarget.value)}
        autosize
        minRows={3}
        maxRows={12}
        data-autofocus
        spellCheck={false}
      />
      <div className="ask">
        <Button type="submit" loading={busy}>
          {words.review}
        </Button>
        <Button variant="subtle" onClick={close}>
          {t.edit.cancel}
        </Button>
      </div>
    </form>
  )
}
