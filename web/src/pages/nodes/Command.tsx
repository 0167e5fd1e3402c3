import { Button, CopyButton } from '@mantine/core'
import { t } from '@/text'

/** A command of the command line, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span className="block" style={{ display: 'flex', gap: 8, alignItems: 'center', marginTop: 8, flexWrap: 'wrap' }}>
      <code>{text}</code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button size="compact-sm" variant="subtle" onClick={copy} aria-label={`${t.operators.copy} ${text}`}>
            {copied ? t.operators.copied : t.operators.copy}
          </Button>
        )}
      </CopyButton>
    </span>
  )
}
