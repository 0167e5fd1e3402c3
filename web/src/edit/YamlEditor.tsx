import { yaml } from '@codemirror/lang-yaml'
import { linter, lintGutter, type Diagnostic } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import { basicSetup } from 'codemirror'
import { EditorView } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { parseDocument, stringify } from 'yaml'
import type { Errors } from './SchemaForm'
import type { Value } from './object'

/** Reads YAML; the problems are those of the syntax. */
export function read(text: string): { value?: Value; problems: { from: number; to: number; message: string }[] } {
  const doc = parseDocument(text, { prettyErrors: true })
  const problems = doc.errors.map((e) => ({ from: e.pos[0], to: Math.max(e.pos[1], e.pos[0] + 1), message: e.message.split('\n')[0]! }))
  const value = problems.length ? undefined : (doc.toJS() ?? {})
  if (value !== undefined && (typeof value !== 'object' || Array.isArray(value))) return { problems: [{ from: 0, to: text.length, message: 'fields are wanted here, each as name: value' }] }
  return { value: value as Value | undefined, problems }
}

export const write = (value: Value) => (Object.keys(value).length ? stringify(value, { lineWidth: 100 }) : '')

/** Where a field such as routes[0].path stands in a text. */
export function positionOf(text: string, path: string): [number, number] {
  const doc = parseDocument(text)
  let steps: (string | number)[] = path.split(/[.[\]]+/).filter(Boolean).map((s) => (/^\d+$/.test(s) ? Number(s) : s))
  for (; steps.length > 0; steps = steps.slice(0, -1)) {
    const node = doc.getIn(steps, true) as { range?: [number, number, number] } | undefined
    if (node?.range) return [node.range[0], Math.max(node.range[1], node.range[0] + 1)]
  }
  return [0, Math.min(1, text.length)]
}

/** The YAML of one object, with problems at their place. */
export default function YamlEditor({ value, onChange, errors, readOnly, label }: { value: Value; onChange: (v: Value | undefined) => void; errors: Errors; readOnly?: boolean; label: string }) {
  const at = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const tell = useRef(onChange)
  tell.current = onChange
  const wrong = useRef(errors)
  wrong.current = errors

  useEffect(() => {
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
    const made = new EditorView({
      parent: at.current!,
      state: EditorState.create({
        doc: write(value),
        extensions: [
          basicSetup,
          yaml(),
          lintGutter(),
          EditorView.lineWrapping,
          EditorView.cspNonce.of(nonce),
          EditorView.editable.of(!readOnly),
          EditorState.readOnly.of(!!readOnly),
          EditorView.contentAttributes.of({ 'aria-label': label }),
          linter(
            (v): Diagnostic[] => {
              const text = v.state.doc.toString()
              const { problems } = read(text)
              if (problems.length) return problems.map((p) => ({ ...p, to: Math.min(p.to, text.length), severity: 'error' }))
              return Object.entries(wrong.current).map(([path, message]) => {
                const [from, to] = positionOf(text, path)
                return { from, to, message, severity: 'error' }
              })
            },
            { delay: 200 },
          ),
          EditorView.updateListener.of((u) => u.docChanged && tell.current(read(u.state.doc.toString()).value)),
        ],
      }),
    })
    view.current = made
    return () => made.destroy()
    // The editor is made once: its text is its own from then on.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  useEffect(() => view.current?.dispatch({}), [errors])
  return <div className="yaml" ref={at} />
}
