import { Button, TextInput } from '@mantine/core'
import { IconPlus, IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import { label } from '@/edit/words'
import { Dialog } from '@/ui/Dialog'
import { t } from '@/text'
import { groups } from './flow'

const words = t.proxy

/** Adds a filter to a route: all that it does not have, in groups, each with a line of help. */
export function FilterMenu({ names, add }: { names: string[]; add: (name: string) => void }) {
  const [open, setOpen] = useState(false)
  const [text, setText] = useState('')
  const close = () => {
    setOpen(false)
    setText('')
  }
  const fits = (name: string) => `${label(name)} ${name} ${words.filterHelp[name] ?? ''}`.toLowerCase().includes(text.trim().toLowerCase())
  const found = Object.entries(groups)
    .map(([group, list]) => [group, list.filter((n) => names.includes(n) && fits(n))] as const)
    .filter(([, list]) => list.length > 0)
  const choose = (name: string) => {
    close()
    add(name)
  }
  return (
    <>
      <button type="button" className="chip" onClick={() => setOpen(true)}>
        <IconPlus size={13} aria-hidden /> {words.addFilter}
      </button>
      <Dialog opened={open} close={close} title={words.addFilter} size={860}>
        <TextInput
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => e.key === 'Enter' && found[0]?.[1][0] && choose(found[0][1][0])}
          placeholder={words.findFilter}
          aria-label={words.findFilter}
          leftSection={<IconSearch size={15} aria-hidden />}
          data-autofocus
        />
        {found.length === 0 && <p className="small">{words.noSuchFilter}</p>}
        <div className="filter-groups">
          {found.map(([group, list]) => (
            <section key={group} aria-label={words.filterGroups[group]}>
              <h3>{words.filterGroups[group]}</h3>
              {list.map((name) => (
                <Button key={name} variant="subtle" color="gray" className="filter-choice" onClick={() => choose(name)}>
                  <span>
                    <strong>{label(name)}</strong>
                    <span className="small block">{words.filterHelp[name]}</span>
                  </span>
                </Button>
              ))}
            </section>
          ))}
        </div>
      </Dialog>
    </>
  )
}
