import { Button, CopyButton } from '@mantine/core'
import type { ReactNode } from 'react'
import { t } from '@/text'
import { Dialog } from './Dialog'

/** Shows a secret that the server does not show again. A click beside it does not close it. */
export function Once({ title, value, children, close }: { title: string; value: string; children?: ReactNode; close: () => void }) {
  return (
    <Dialog close={close} title={title} closeOnClickOutside={false} withCloseButton={false} size="lg">
      {children}
      <pre className="code" tabIndex={0}>
        {value}
      </pre>
      <div className="ask" style={{ marginTop: 14 }}>
        <CopyButton value={value}>
          {({ copied, copy }) => (
            <Button variant="default" onClick={copy}>
              {copied ? t.operators.copied : t.operators.copy}
            </Button>
          )}
        </CopyButton>
        <Button onClick={close}>{t.operators.done}</Button>
      </div>
    </Dialog>
  )
}
