import { ActionIcon, Button, Checkbox, FileButton, PasswordInput, SegmentedControl, Switch, Textarea, TextInput } from '@mantine/core'
import { IconTrash, IconUpload } from '@tabler/icons-react'
import { useEffect, useRef, useState, type DragEvent, type FormEvent } from 'react'
import { call } from '@/api/client'
import { Card } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { t } from '@/text'
import { bytes } from '../log/livelog'
import { besidePorts, guess, maxSize, read, type Imported, type Source } from './importing'

const words = t.imports

/** Where the configuration comes from: files, a text, or the proxy itself. */
export function Chooser({ kind, again, done }: { kind: string; again: boolean; done: (it: Imported) => void }) {
  const ways = ['files', ...(kind === 'npm' ? [] : ['paste']), ...(kind in words.addressHelp ? ['address'] : [])]
  const [way, setWay] = useState('files')
  const [files, setFiles] = useState<Source[]>([])
  const [text, setText] = useState('')
  const [address, setAddress] = useState('')
  const [token, setToken] = useState('')
  const [aside, setAside] = useState(true)
  const { act, busy, wrong, setWrong } = useAct('audit')

  async function submit(e: FormEvent) {
    e.preventDefault()
    const given =
      way === 'files' ? files.map(({ size: _, ...f }) => ({ ...f, included: f.included || undefined })) : way === 'paste' && text.trim() ? [{ name: words.pasteName[kind] ?? 'text', text }] : []
    if (way === 'address' ? !address.trim() : given.length === 0) return setWrong({ [way === 'address' ? 'address' : 'files']: words.nothing })
    if (files.reduce((n, f) => n + f.size, 0) > maxSize) return setWrong({ files: words.tooLarge })
    const ports = aside ? besidePorts : undefined
    const body = way === 'address' ? { source: kind, ports, address: address.trim(), token: token || undefined } : { source: kind, ports, files: given }
    const answer = await act('go', () => call<Imported>('POST', '/import', { body }))
    if (answer) done(answer.value)
  }

  return (
    <Card
      title={words.files}
      actions={
        ways.length > 1 && (
          <SegmentedControl
            size="xs"
            value={way}
            onChange={(v) => {
              setWay(v)
              setWrong({})
            }}
            data={ways.map((value) => ({ value, label: words.how[value] }))}
            aria-label={words.files}
          />
        )
      }
    >
      <form onSubmit={(e) => void submit(e)} className="fields" noValidate>
        <Wrong wrong={wrong} fields={way === 'address' ? ['address', 'token'] : []} />
        {way === 'files' && <Files kind={kind} files={files} change={setFiles} />}
        {way === 'paste' && (
          <Textarea label={words.text} value={text} onChange={(e) => setText(e.currentTarget.value)} autosize minRows={8} maxRows={20} spellCheck={false} classNames={{ input: 'mono' }} />
        )}
        {way === 'address' && (
          <>
            <TextInput
              label={words.address}
              description={words.addressHelp[kind]}
              value={address}
              error={wrong.address}
              onChange={(e) => setAddress(e.currentTarget.value)}
              autoComplete="off"
              spellCheck={false}
              maw={460}
            />
            <PasswordInput label={words.token} description={words.tokenHelp[kind]} value={token} error={wrong.token} onChange={(e) => setToken(e.currentTarget.value)} autoComplete="off" maw={460} />
          </>
        )}
        <Switch label={words.beside} description={words.besideHelp} checked={aside} onChange={(e) => setAside(e.currentTarget.checked)} />
        <Button type="submit" loading={busy === 'go'} variant={again ? 'default' : 'filled'} style={{ alignSelf: 'flex-start' }}>
          {again ? words.again : words.go}
        </Button>
      </form>
    </Card>
  )
}

function Files({ kind, files, change }: { kind: string; files: Source[]; change: (f: Source[]) => void }) {
  const folder = useRef<HTMLInputElement>(null)
  const [over, setOver] = useState(false)
  useEffect(() => folder.current?.setAttribute('webkitdirectory', ''), [])
  async function add(list: Iterable<File> | null) {
    const found = await Promise.all([...(list ?? [])].map(read))
    const names = new Set(found.map((f) => f.name))
    change(guess(kind, [...files.filter((f) => !names.has(f.name)), ...found]))
  }
  const set = (i: number, more: Partial<Source>) => change(files.map((f, j) => (j === i ? { ...f, ...more } : f)))
  const drop = (e: DragEvent) => {
    e.preventDefault()
    setOver(false)
    void add(e.dataTransfer.files)
  }
  return (
    <>
      <div
        className="drop"
        data-over={over || undefined}
        onDragOver={(e) => {
          e.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <IconUpload size={22} aria-hidden />
        <span>{words.drop}</span>
        <span className="entry-actions">
          <FileButton multiple onChange={(list) => void add(list)} inputProps={{ 'aria-label': words.choose }}>
            {(props) => (
              <Button {...props} variant="default" size="compact-sm">
                {words.choose}
              </Button>
            )}
          </FileButton>
          {kind !== 'npm' && (
            <>
              <Button variant="subtle" size="compact-sm" onClick={() => folder.current?.click()}>
                {words.folder}
              </Button>
              <input
                ref={folder}
                type="file"
                multiple
                hidden
                aria-label={words.folder}
                onChange={(e) => {
                  void add(e.currentTarget.files)
                  e.currentTarget.value = ''
                }}
              />
            </>
          )}
        </span>
      </div>
      {files.length > 0 && (
        <ul className="rows">
          {files.map((f, i) => (
            <li key={i} className="entry" style={{ alignItems: 'center' }}>
              <TextInput className="entry-name" aria-label={words.nameOf(f.name)} value={f.name} onChange={(e) => set(i, { name: e.currentTarget.value })} spellCheck={false} autoComplete="off" />
              <span className="small">{bytes(f.size)}</span>
              {kind !== 'npm' && files.length > 1 && (
                <Checkbox size="xs" label={words.included} aria-label={words.includedOf(f.name)} checked={f.included} onChange={(e) => set(i, { included: e.currentTarget.checked })} />
              )}
              <ActionIcon variant="subtle" color="red" aria-label={words.remove(f.name)} onClick={() => change(files.filter((_, j) => j !== i))}>
                <IconTrash size={16} />
              </ActionIcon>
            </li>
          ))}
        </ul>
      )}
      {files.length > 1 && ['nginx', 'caddy', 'haproxy'].includes(kind) && <p className="small lead">{words.names}</p>}
    </>
  )
}
