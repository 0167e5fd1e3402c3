import { Button, Drawer, Modal, type DrawerProps, type ModalProps } from '@mantine/core'
import { useEffect, useState, type ReactNode } from 'react'
import { t } from '@/text'

type Shown<Props> = Omit<Props, 'onClose' | 'opened'> & {
  close: () => void
  /** Absent where it is drawn only while it is open. */
  opened?: boolean
}

/** A question in the middle of the page. */
export function Dialog({ close, opened, ...props }: Shown<ModalProps>) {
  useFocusBack(opened === undefined)
  return <Modal opened={opened ?? true} onClose={close} closeButtonProps={{ 'aria-label': t.edit.cancel }} {...props} />
}

/** Something long at the right of the page, at most so many pixels wide. */
export function Panel({ close, opened, width, ...props }: Omit<Shown<DrawerProps>, 'size' | 'position'> & { width: number }) {
  useFocusBack(opened === undefined)
  return <Drawer opened={opened ?? true} onClose={close} position="right" size={`min(${width}px, 100%)`} closeButtonProps={{ 'aria-label': t.edit.cancel }} {...props} />
}

/** Asks before something that cannot be taken back. */
export function ConfirmDialog({ title, text, yes, go, close }: { title: string; text: ReactNode; yes: string; go: () => Promise<unknown>; close: () => void }) {
  const [busy, setBusy] = useState(false)
  return (
    <Dialog close={close} title={title}>
      <p className="lead">{text}</p>
      <div className="ask">
        <Button
          color="red.9"
          loading={busy}
          onClick={() => {
            setBusy(true)
            void go().finally(() => {
              setBusy(false)
              close()
            })
          }}
        >
          {yes}
        </Button>
        <Button variant="default" onClick={close} data-autofocus>
          {t.edit.cancel}
        </Button>
      </div>
    </Dialog>
  )
}

/**
 * Gives the focus back to what had it before, when a dialog goes that is drawn only while
 * it is open: it is away before Mantine, which does so for the others, could.
 */
function useFocusBack(drawnWhileOpen: boolean) {
  const [before] = useState(() => document.activeElement)
  useEffect(
    () => () =>
      void setTimeout(() => {
        if (drawnWhileOpen && document.activeElement === document.body && before instanceof HTMLElement && before.isConnected) before.focus()
      }),
    [before, drawnWhileOpen],
  )
}
