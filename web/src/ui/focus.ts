import { useEffect, useState } from 'react'

/**
 * Gives the focus back to what had it before, when a dialog goes that is drawn only while
 * it is open: it is away before Mantine could do so.
 */
export function useFocusBack() {
  const [before] = useState(() => document.activeElement)
  useEffect(
    () => () =>
      void setTimeout(() => {
        if (document.activeElement === document.body && before instanceof HTMLElement && before.isConnected) before.focus()
      }),
    [before],
  )
}
