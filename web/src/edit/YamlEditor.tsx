import { autocompletion, startCompletion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete'
import { yaml } from '@codemirror/lang-yaml'
import { defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { linter, lintGutter, type Diagnostic } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import { basicSetup } from 'codemirror'
import { EditorView } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { parseDocument, stringify } from 'yaml'
import { t } from '@/text'
import { inspect, nearest, options, placeOf, type Found } from './complete'
import type { JSONSchema } from './schema'
import { wrongText, type Errors } from './fields'
import type { Value } from './object'

/** Reads YAML; the problems are those of the syntax. */
export function read(text: string): { value?: Value; problems: { from: number; to: number; message: string }[] } {
  const doc = parseDocument(text, { prettyErrors: true })
  const problems = doc.errors.map((e) => ({ from: e.pos[0], to: Math.max(e.pos[1], e.pos[0] + 1), message: e.message.split('\n')[0]! }))
  const value = problems.length ? undefined : (doc.toJS() ?? {})
  if (value !== undefined && (typeof value !== 'object' || Array.isArray(value))) return { problems: [{ from: 0, to: text.length, message: t.edit.fieldsExpected }] }
  return { value: value as Value | undefined, problems }
}

export const write = (value: Value) => (Object.keys(value).length ? stringify(value, { lineWidth: 100 }) : '')

/** Where a field such as routes[0].path stands in a text. */
function positionOf(text: string, path: string): [number, number] {
  const doc = parseDocument(text)
  let steps: (string | number)[] = path
    .split(/[.[\]]+/)
    .filter(Boolean)
    .map((s) => (/^\d+$/.test(s) ? Number(s) : s))
  for (; steps.length > 0; steps = steps.slice(0, -1)) {
    const node = doc.getIn(steps, true) as { range?: [number, number, number] } | undefined
    if (node?.range) return [node.range[0], Math.max(node.range[1], node.range[0] + 1)]
  }
  return [0, Math.min(1, text.length)]
}

/** The marks of problems are drawn by text, for the policy allows no images in styles. */
const marks = EditorView.theme({
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)' },
  '.cm-lintRange-active': { backgroundColor: 'var(--bad-soft)' },
  '.cm-lint-marker': { color: 'var(--bad)' },
  '.cm-lint-marker-error': { content: '"■"', fontSize: '0.7em' },
  '.cm-tooltip': { background: 'var(--surface)', color: 'var(--ink)', border: '1px solid var(--line)', borderRadius: '8px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { background: 'var(--info-soft)', color: 'var(--info)' },
  '.cm-completionInfo': { maxWidth: '320px', fontFamily: 'inherit' },
  '.cm-completionDetail': { color: 'var(--ink-2)', fontStyle: 'normal' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--surface-2)' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
})

/** The colors of YAML for those that the editor has, which are for a light background only: keys, comments, texts, all others. */
const colors: Record<string, string> = { '#00c': 'var(--info)', '#940': 'var(--ink-2)', '#a11': 'var(--good)', '#f00': 'var(--bad)' }
const highlighting = syntaxHighlighting(HighlightStyle.define(defaultHighlightStyle.specs.map((s) => (s.color ? { ...s, color: colors[s.color as string] ?? 'var(--warn)' } : s))))

function said(f: Found): string {
  if (f.wrong) return wrongText(f.wrong)
  if (f.choices) return t.edit.oneOf(f.choices.join(', '))
  const meant = nearest(f.key, f.known ?? [])
  return meant ? t.edit.unknownMeant(f.key, meant) : t.edit.unknownKey(f.key)
}

/** Offers keys with their help, and the values of a field. */
const completion =
  (schema: JSONSchema, root: JSONSchema) =>
  (c: CompletionContext): CompletionResult | null => {
    const place = placeOf(c.state.doc.toString(), c.pos)
    if (!place || (place.from === c.pos && !c.explicit && !place.value)) return null
    const list = options(place, schema, root)
    if (list.length === 0) return null
    return {
      from: place.from,
      options: list.map((o) => ({
        label: o.label,
        detail: o.detail,
        info: o.info || undefined,
        type: place.value ? 'constant' : 'property',
        // After a key its value is offered at once.
        apply: (view, _, from, to) => {
          view.dispatch({ changes: { from, to, insert: o.apply }, selection: { anchor: from + o.apply.length }, userEvent: 'input.complete' })
          if (!place.value) setTimeout(() => startCompletion(view))
        },
      })),
      validFor: /^[\w.-]*$/,
    }
  }

/**
 * The YAML of one object, with completion by its schema, and with problems at their place.
 * A whole document is given as its text, whose comments stay.
 */
export default function YamlEditor({
  value = {},
  text,
  onChange,
  onText,
  errors,
  readOnly,
  label,
  schema,
  root,
}: {
  schema: JSONSchema
  root: JSONSchema
  value?: Value
  text?: string
  onChange?: (v: Value | undefined) => void
  onText?: (text: string) => void
  errors: Errors
  readOnly?: boolean
  label: string
}) {
  const at = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const tell = useRef({ onChange, onText })
  tell.current = { onChange, onText }
  const wrong = useRef(errors)
  wrong.current = errors

  useEffect(() => {
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
    const made = new EditorView({
      parent: at.current!,
      state: EditorState.create({
        doc: text ?? write(value),
        extensions: [
          basicSetup,
          yaml(),
          highlighting,
          autocompletion({ override: [completion(schema, root)] }),
          lintGutter(),
          EditorView.lineWrapping,
          EditorView.cspNonce.of(nonce),
          EditorView.editable.of(!readOnly),
          EditorState.readOnly.of(!!readOnly),
          // Escape closes what is offered, not the drawer around.
          EditorView.contentAttributes.of({ 'aria-label': label, 'data-mantine-stop-propagation': 'true' }),
          marks,
          linter(
            (v): Diagnostic[] => {
              const text = v.state.doc.toString()
              const { problems } = read(text)
              if (problems.length) return problems.map((p) => ({ ...p, to: Math.min(p.to, text.length), severity: 'error' }))
              const here = inspect(text, schema, root).map((f): Diagnostic => ({ from: f.from, to: f.to, message: said(f), severity: 'error' }))
              const reported = Object.entries(wrong.current).map(([path, message]): Diagnostic => {
                const [from, to] = positionOf(text, path)
                return { from, to, message, severity: 'error' }
              })
              return [...here, ...reported]
            },
            { delay: 200 },
          ),
          EditorView.updateListener.of((u) => {
            if (!u.docChanged) return
            const now = u.state.doc.toString()
            tell.current.onText?.(now)
            tell.current.onChange?.(read(now).value)
          }),
        ],
      }),
    })
    view.current = made
    return () => made.destroy()
    // The editor is made once: its text is its own from then on.
  }, [])
  useEffect(() => view.current?.dispatch({}), [errors])
  return <div className="yaml" ref={at} />
}
