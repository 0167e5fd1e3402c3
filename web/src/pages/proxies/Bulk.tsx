import { Button, Menu, Popover, Select, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconChevronDown } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { stringify } from 'yaml'
import { objects } from '@/api/queries'
import { reviewing } from '@/edit/basket'
import { save } from '@/ui/save'
import { t } from '@/text'
import { changeAll, documentOf, removeAll, withActive, withWord, type Target } from './changes'

const words = t.proxies

/** Says what is in the changes now; nothing is applied yet. */
export function announce(n: number, skipped = 0) {
  if (n > 0)
    notifications.show({
      message: (
        <div className="ask">
          <span>{words.bulkDone(n)}</span>
          <Button size="compact-sm" variant="default" onClick={() => reviewing.set(true)}>
            {t.edit.review}
          </Button>
        </div>
      ),
    })
  if (skipped > 0) notifications.show({ message: words.bulkSkipped(skipped), color: 'yellow' })
}

/** What can be done with the selected proxies. */
export function Bulk({ targets, clear, may }: { targets: Target[]; clear: () => void; may: boolean }) {
  const [asking, setAsking] = useState<'tag' | 'policy'>()
  const [word, setWord] = useState<string | null>('')
  const { data: policies } = useQuery(objects('policies'))
  const done = (n: number) => {
    announce(n, targets.filter((x) => x.object.read_only).length)
    clear()
  }
  const http = targets.filter((x) => x.kind === 'proxies')
  function add() {
    const w = word?.trim()
    if (!w) return
    done(changeAll(asking === 'policy' ? http : targets, withWord(asking === 'policy' ? 'use' : 'tags', w)))
    setAsking(undefined)
    setWord('')
  }
  return (
    <div className="ask bulk">
      <strong>{words.selected(targets.length)}</strong>
      {may && (
        <>
          <Button size="compact-sm" variant="default" onClick={() => done(changeAll(targets, withActive(true)))}>
            {words.bulk.enable}
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => done(changeAll(targets, withActive(false)))}>
            {words.bulk.disable}
          </Button>
          <Popover withRoles={false} opened={!!asking} onChange={(o) => !o && setAsking(undefined)} trapFocus returnFocus position="bottom-start" width={280} withinPortal>
            <Popover.Target>
              <span className="entry-actions">
                <Button size="compact-sm" variant="default" onClick={() => setAsking('tag')}>
                  {words.bulk.tag}
                </Button>
                <Button
                  size="compact-sm"
                  variant="default"
                  onClick={() => setAsking('policy')}
                  disabled={http.length === 0 || !policies?.length}
                  title={policies?.length ? undefined : t.settings.noPolicies}
                >
                  {words.bulk.policy}
                </Button>
              </span>
            </Popover.Target>
            <Popover.Dropdown>
              <form
                className="fields"
                onSubmit={(e) => {
                  e.preventDefault()
                  add()
                }}
              >
                {asking === 'policy' ? (
                  <Select label={words.bulkPolicy} data={(policies ?? []).map((p) => p.name!)} value={word} onChange={setWord} comboboxProps={{ withinPortal: false }} />
                ) : (
                  <TextInput label={words.bulkTag} value={word ?? ''} onChange={(e) => setWord(e.currentTarget.value)} data-autofocus />
                )}
                <Button type="submit" size="compact-md">
                  {t.entries.add}
                </Button>
              </form>
            </Popover.Dropdown>
          </Popover>
          <Button size="compact-sm" variant="default" color="red" onClick={() => done(removeAll(targets))}>
            {words.bulk.remove}
          </Button>
        </>
      )}
      <Button size="compact-sm" variant="default" onClick={() => save('headgate-proxies.yaml', stringify(documentOf(targets)), 'application/yaml')}>
        {words.bulk.export}
      </Button>
      <Button size="compact-sm" variant="subtle" onClick={clear}>
        {words.unselect}
      </Button>
    </div>
  )
}

/** The filters that this browser keeps; each is a link of its own too. */
export function SavedFilters({ text, set }: { text: string; set: (text: string) => void }) {
  const [list, setList] = useState<string[]>(kept)
  const keep = (next: string[]) => {
    setList(next)
    try {
      localStorage.setItem(key, JSON.stringify(next))
    } catch {
      // the browser keeps nothing: they live as long as the page
    }
  }
  return (
    <Menu position="bottom-start" width={280}>
      <Menu.Target>
        <Button size="sm" variant="default" rightSection={<IconChevronDown size={14} aria-hidden />}>
          {words.filters}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {list.length === 0 && <Menu.Label>{words.noFilters}</Menu.Label>}
        {list.map((f) => (
          <Menu.Item key={f} onClick={() => set(f)}>
            {f}
          </Menu.Item>
        ))}
        {text.trim() && !list.includes(text.trim()) && <Menu.Item onClick={() => keep([...list, text.trim()])}>{words.saveFilter}</Menu.Item>}
        {list.includes(text.trim()) && (
          <Menu.Item color="red" onClick={() => keep(list.filter((f) => f !== text.trim()))}>
            {words.removeFilter(text.trim())}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}

const key = 'headgate.filters'
function kept(): string[] {
  try {
    return JSON.parse(localStorage.getItem(key) ?? '[]') as string[]
  } catch {
    return []
  }
}
