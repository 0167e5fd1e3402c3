import { Alert, Button, SegmentedControl } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { notifications } from '@mantine/notifications'
import { lazy, Suspense, useEffect, useId, useRef, useState } from 'react'
import { Problem, fieldOf, sentence, withoutPlace } from '@/api/problem'
import { objectForForm, documentPath, schema as schemaQuery, type AnyObject } from '@/api/queries'
import { useStore } from '@/api/store'
import { Failure, Loading } from '@/ui/basics'
import { Panel } from '@/ui/Dialog'
import { t } from '@/text'
import { BanTrial } from './BanTrial'
import { basket, editOf, plan, put, reviewing } from './basket'
import { draftOf, drafts, dropDraft, keepDraft } from './drafts'
import { equal, written, type Value } from './object'
import { emptyPart, schemaAround, schemaAt, stepsOf, valueAt, withPart } from './part'
import { schemaOf, type JSONSchema } from './schema'
import type { Errors } from './fields'
import { SchemaField, SchemaForm } from './SchemaForm'
import { SubjectProvider } from './subject'
import { isFeature } from './words'

const YamlEditor = lazy(() => import('./YamlEditor'))

/** Problems of a refusal by the field of one object. */
export function errorsOf(e: unknown, kind: string, name: string): Errors {
  if (!(e instanceof Problem)) return { '': sentence(e) }
  const out: Errors = {}
  for (const m of e.mistakes) {
    const text = withoutPlace(m.remedy ? `${m.detail}; ${m.remedy}` : m.detail)
    const field = m.pointer.startsWith('/edits/') ? fieldOf(m.pointer.replace(/^\/edits\/\d+(\/value)?/, '')) : fieldOf(m.pointer, documentPath(kind, name))
    out[field] = out[field] ? `${out[field]}. ${text}` : text
  }
  return out
}

type Edited = {
  kind: string
  name: string
  /** The object as the page shows it; absent for a new one. */
  object?: AnyObject
  /** What a new one begins with, or the name of the object whose copy it is. */
  initial?: Value
  like?: string
  /** The path of the one setting that is edited; the others are a click away. */
  part?: string
  title: string
  onClose: () => void
}

/**
 * Edits one object in a drawer. The form begins with the object as it is now: a page may
 * show it as it was before a change that it has not read yet. What waits to be reviewed
 * goes on from where it is.
 */
export function ObjectEditor(edited: Edited) {
  const { kind, name, object, like, title, onClose } = edited
  const root = useQuery(schemaQuery)
  const waiting = editOf(useStore(basket), kind, name)
  const [reads] = useState(waiting?.value ? undefined : (like ?? (object && name)))
  const read = useQuery({ ...objectForForm(kind, reads ?? '', useId()), enabled: reads !== undefined })
  const failed = [root, read].find((q) => q.error)
  return (
    <Panel close={onClose} width={720} title={title} closeOnClickOutside={false}>
      {failed ? (
        <Failure error={failed.error} again={() => void failed.refetch()} />
      ) : !root.data || (reads !== undefined && !read.data) ? (
        <Loading />
      ) : (
        <Form {...edited} root={root.data} object={object && (read.data ?? object)} initial={like ? written(kind, read.data!) : edited.initial} />
      )}
    </Panel>
  )
}

/**
 * An object as a form and as YAML, which are two views of one value. The server checks it
 * before it goes into the basket; nothing is applied from here.
 */
function Form({ kind, name, object, initial, part, root, onClose }: Edited & { root: JSONSchema }) {
  // The page behind follows what others change; the form does not, and the review reports it.
  const [draft, setDraft] = useState(() => draftOf(drafts.get(), kind, name))
  const [base] = useState(draft ? draft.base : object)
  const waiting = editOf(useStore(basket), kind, name)
  const [first] = useState<Value>(() => waiting?.value ?? initial ?? (object ? written(kind, object) : {}))
  const [value, setValue] = useState<Value>(draft?.value ?? first)
  const finished = useDraft(kind, name, value, first, base, root)
  const [view, setView] = useState('form')
  const [errors, setErrors] = useState<Errors>({})
  const [badText, setBadText] = useState(false)
  const [busy, setBusy] = useState(false)
  const [whole, setWhole] = useState(!part)
  // A refusal of another field shows all of them.
  const one = !whole && part && Object.keys(errors).every((p) => p === '' || p.startsWith(part)) ? part : undefined

  async function save(review: boolean) {
    setBusy(true)
    setErrors({})
    const edit = { kind, name, op: 'set' as const, value, base }
    try {
      // Others that wait are part of it: a proxy may name a policy that is new.
      await plan([...basket.get().filter((e) => e.kind !== kind || e.name !== name), edit])
      finished()
      put(edit)
      onClose()
      if (review) reviewing.set(true)
    } catch (e) {
      setErrors(errorsOf(e, kind, name))
    } finally {
      setBusy(false)
    }
  }

  return (
    <SubjectProvider value={{ kind, saved: object && name, value }}>
      <div className="stack">
        {draft && (
          <Alert color="teal" role="status">
            <div className="ask">
              <span>{t.edit.draftRestored}</span>
              <Button
                size="compact-sm"
                variant="default"
                onClick={() => {
                  setDraft(undefined)
                  setValue(first)
                  setView('form')
                }}
              >
                {t.edit.draftDrop}
              </Button>
            </div>
          </Alert>
        )}
        <SegmentedControl
          value={view}
          onChange={setView}
          disabled={badText}
          data={[
            { value: 'form', label: t.edit.form },
            { value: 'yaml', label: t.edit.yaml },
          ]}
          aria-label={t.edit.form}
        />
        {Object.keys(errors).length > 0 && (
          <Alert color="red" role="alert" title={t.edit.refused}>
            <ul style={{ margin: 0, paddingLeft: 18 }}>
              {Object.entries(errors).map(([path, text]) => (
                <li key={path}>
                  {path && <code>{path}</code>} {text}
                </li>
              ))}
            </ul>
          </Alert>
        )}
        {view === 'form' && one ? (
          <Part path={one} schema={schemaOf(kind, root)} root={root} value={value} onChange={setValue} errors={errors} all={() => setWhole(true)} />
        ) : view === 'form' ? (
          <SchemaForm schema={schemaOf(kind, root)} root={root} value={value} onChange={setValue} errors={errors} />
        ) : (
          <Suspense fallback={<Loading />}>
            <YamlEditor
              value={value}
              schema={schemaOf(kind, root)}
              root={root}
              errors={errors}
              label={`${t.edit.yaml} ${name}`}
              onChange={(v) => {
                setBadText(v === undefined)
                if (v) setValue(v)
              }}
            />
          </Suspense>
        )}
        {kind === 'bans' && !badText && <BanTrial edit={{ kind, name, op: 'set', value, base }} />}
        <div className="actions-foot">
          <Button loading={busy} disabled={badText} onClick={() => void save(true)}>
            {t.edit.review}
          </Button>
          <Button variant="default" loading={busy} disabled={badText} onClick={() => void save(false)}>
            {t.edit.save}
          </Button>
          <Button variant="subtle" className="not-phone" onClick={onClose}>
            {t.edit.cancel}
          </Button>
        </div>
      </div>
    </SubjectProvider>
  )
}

/**
 * Keeps what is typed as a draft as long as it differs from what the form began with; the
 * function that it gives ends that.
 */
function useDraft(kind: string, name: string, value: Value, first: Value, base: AnyObject | undefined, root: JSONSchema): () => void {
  const over = useRef(false)
  const dirty = useRef(false)
  useEffect(() => {
    if (over.current) return
    dirty.current = !equal(value, first)
    if (dirty.current) keepDraft({ kind, name, value, base }, root)
    else dropDraft(kind, name)
  }, [value, first, kind, name, base, root])
  useEffect(
    () => () => {
      if (dirty.current && !over.current) notifications.show({ id: `draft ${kind} ${name}`, message: t.edit.draftKept })
    },
    [kind, name],
  )
  return () => {
    over.current = true
    dropDraft(kind, name)
  }
}

/** One setting of the object alone. */
function Part({
  path,
  schema,
  root,
  value,
  onChange,
  errors,
  all,
}: {
  path: string
  schema: JSONSchema
  root: JSONSchema
  value: Value
  onChange: (v: Value) => void
  errors: Errors
  all: () => void
}) {
  const steps = stepsOf(path)
  const field = schemaAt(schema, steps, root)
  const [absent] = useState(valueAt(value, steps) === undefined)
  const change = (v: unknown) => onChange(withPart(value, steps, v))
  const initial = valueAt(value, steps) === undefined ? emptyPart(field ?? {}, root) : undefined
  // A filter that is opened is added: it is set with its defaults, a switch is on.
  useEffect(() => {
    if (initial !== undefined) change(initial)
  }, [])
  if (!field) return null
  return (
    <>
      <SchemaField
        name={String(steps.at(-1))}
        of={schemaAround(schema, steps, root)}
        schema={field}
        root={root}
        value={valueAt(value, steps)}
        onChange={change}
        errors={errors}
        at={path}
        required={absent && field && isFeature(String(steps.at(-1)))}
      />
      <Button variant="default" onClick={all} style={{ alignSelf: 'flex-start' }}>
        {t.edit.all}
      </Button>
    </>
  )
}
