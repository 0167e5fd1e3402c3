import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from '@mantine/core'
import { t } from '@/text'

const tide: MantineColorsTuple = ['#e6f7fa', '#d0ecf1', '#a1d8e2', '#6fc3d2', '#47b1c4', '#2ea5bb', '#1a93aa', '#0b7285', '#06606f', '#004c59']
const slate: MantineColorsTuple = ['#c9d1da', '#aeb8c4', '#8b97a5', '#647181', '#43505f', '#2e3945', '#222b35', '#19212a', '#121921', '#0c1117']

const inputWrapperOrder: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error']

/**
 * One design: spacing in steps of four, few sizes of type, one accent, and colours that
 * mean something (theme/states.ts). Pages take these and set none of their own.
 */
export const theme = createTheme({
  primaryColor: 'tide',
  primaryShade: 7,
  autoContrast: true,
  colors: { tide, dark: slate },
  fontFamily: '"Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  headings: { fontWeight: '650', sizes: { h1: { fontSize: '1.5rem', lineHeight: '1.3' }, h2: { fontSize: '1.125rem', lineHeight: '1.4' }, h3: { fontSize: '1rem', lineHeight: '1.4' } } },
  defaultRadius: 'md',
  cursorType: 'pointer',
  focusRing: 'auto',
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: 'sm' } },
    Notification: { defaultProps: { closeButtonProps: { 'aria-label': t.problem.close } } },
    // Their heads are no banners of the page, of which there is one at most.
    Drawer: { defaultProps: { attributes: { header: { role: 'presentation' } } } },
    Modal: { defaultProps: { attributes: { header: { role: 'presentation' } }, centered: true, overlayProps: { blur: 2, backgroundOpacity: 0.45 } } },
    Tooltip: { defaultProps: { withArrow: true, multiline: true, maw: 320, openDelay: 250, events: { hover: true, focus: true, touch: true } } },
    // Help stands below its field everywhere, so that fields of a form begin at one line.
    TextInput: { defaultProps: { inputWrapperOrder } },
    Textarea: { defaultProps: { inputWrapperOrder } },
    NumberInput: { defaultProps: { inputWrapperOrder } },
    PasswordInput: { defaultProps: { inputWrapperOrder } },
    Select: { defaultProps: { inputWrapperOrder } },
  },
})

export const variables: CSSVariablesResolver = () => ({
  variables: { '--nav-width': '236px' },
  light: {
    '--mantine-color-body': '#f7f9fb',
    '--surface': '#ffffff',
    '--surface-2': '#f1f4f7',
    '--line': '#dfe5eb',
    '--ink': '#17212b',
    '--ink-2': '#566473',
    '--mantine-color-text': '#17212b',
    '--mantine-color-dimmed': '#566473',
    '--mantine-color-placeholder': '#566473',
    '--good': '#156c3f',
    '--good-soft': '#e3f6ec',
    '--warn': '#945800',
    '--warn-soft': '#fdf1d8',
    '--bad': '#b42335',
    '--bad-soft': '#fde8ea',
    '--calm': '#465360',
    '--calm-soft': '#e9edf1',
    '--info': '#0b6478',
    '--info-soft': '#dff3f7',
    '--mantine-color-error': '#b42335',
    '--mantine-color-anchor': '#096478',
  },
  dark: {
    '--mantine-color-body': '#0f151c',
    '--surface': '#161e27',
    '--surface-2': '#1d2732',
    '--line': '#2b3743',
    '--ink': '#e4eaf0',
    '--ink-2': '#9fadbb',
    '--mantine-color-text': '#e4eaf0',
    '--mantine-color-dimmed': '#9fadbb',
    '--mantine-color-placeholder': '#9fadbb',
    '--good': '#62d399',
    '--good-soft': '#12352a',
    '--warn': '#f2bd5c',
    '--warn-soft': '#3a2d12',
    '--bad': '#ff8d97',
    '--bad-soft': '#421c24',
    '--calm': '#a9b6c3',
    '--calm-soft': '#25303c',
    '--info': '#6fcfe2',
    '--info-soft': '#123540',
    '--mantine-color-error': '#ff8d97',
    '--mantine-color-anchor': '#6fcfe2',
  },
})
