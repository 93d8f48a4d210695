// The small parts that all pages are made of.

import { useEffect, useId, useRef, useState, type ComponentProps, type ReactNode } from "react";
import {
  Button as AriaButton,
  Dialog as AriaDialog,
  Heading,
  Menu,
  MenuItem,
  MenuTrigger,
  Modal,
  ModalOverlay,
  Popover,
  Tooltip,
  TooltipTrigger,
  type ButtonProps as AriaButtonProps,
} from "react-aria-components";
import { useTranslation } from "react-i18next";
import { startAndEnd } from "../text";
import { Icon, type IconName } from "./icons";

export { Icon } from "./icons";

interface ButtonProps extends Omit<AriaButtonProps, "children" | "className"> {
  look?: "primary" | "secondary" | "quiet" | "link" | "danger";
  icon?: IconName;
  className?: string;
  children?: ReactNode;
  "data-testid"?: string;
}

/** A button with words. */
export function Button({ look = "secondary", icon, className = "", children, ...rest }: ButtonProps) {
  return (
    <AriaButton {...rest} className={`button ${look} ${className}`}>
      {icon && <Icon name={icon} />}
      {children}
    </AriaButton>
  );
}

/** A button that shows a picture alone, with its words for screen readers and on hover. */
export function IconButton({
  label,
  icon,
  className = "",
  ...rest
}: Omit<ButtonProps, "children" | "look"> & { label: string; icon: IconName }) {
  return (
    <TooltipTrigger delay={500}>
      <AriaButton {...rest} aria-label={label} className={`icon-button ${className}`}>
        <Icon name={icon} />
      </AriaButton>
      <Tooltip className="tooltip" offset={6}>
        {label}
      </Tooltip>
    </TooltipTrigger>
  );
}

export interface Choice {
  id: string;
  label: string;
  icon?: IconName;
  isDanger?: boolean;
  act: () => void;
}

/** A button that opens a list of actions. */
export function ActionMenu({
  label,
  icon = "more",
  choices,
  testId,
}: {
  label: string;
  icon?: IconName;
  choices: Choice[];
  testId?: string;
}) {
  return (
    <MenuTrigger>
      <AriaButton aria-label={label} className="icon-button" data-testid={testId}>
        <Icon name={icon} />
      </AriaButton>
      <Popover className="popover" placement="bottom end">
        <Menu className="menu" aria-label={label} items={choices} onAction={(id) => choices.find((each) => each.id === id)?.act()}>
          {(each) => (
            <MenuItem id={each.id} className={`menu-item ${each.isDanger ? "danger" : ""}`} textValue={each.label}>
              {each.icon && <Icon name={each.icon} />}
              {each.label}
            </MenuItem>
          )}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

/** A dialog in the middle of the page, or a drawer at its end. */
export function Dialog({
  title,
  isOpen,
  onClose,
  children,
  className = "",
  isDismissable = true,
  role = "dialog",
  testId,
}: {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  className?: string;
  isDismissable?: boolean;
  role?: "dialog" | "alertdialog";
  testId?: string;
}) {
  const { t } = useTranslation();
  return (
    <ModalOverlay
      className="overlay"
      isOpen={isOpen}
      isDismissable={isDismissable}
      isKeyboardDismissDisabled={!isDismissable}
      onOpenChange={(open) => !open && onClose()}
    >
      <Modal className={`modal ${className}`}>
        <AriaDialog role={role} className="dialog" data-testid={testId}>
          <header className="dialog-head">
            <Heading slot="title" dir="auto">
              {title}
            </Heading>
            {isDismissable && <IconButton label={t("common.close")} icon="close" onPress={onClose} />}
          </header>
          <div className="dialog-body">{children}</div>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** A question before something that cannot be taken back. */
export function Confirm({
  title,
  children,
  action,
  isOpen,
  onClose,
  onConfirm,
}: {
  title: string;
  children?: ReactNode;
  action: string;
  isOpen: boolean;
  onClose: () => void;
  onConfirm: () => unknown;
}) {
  const { t } = useTranslation();
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const confirm = async () => {
    setBusy(true);
    setProblem("");
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose} role="alertdialog" className="small" testId="confirm">
      {children}
      <Failure>{problem}</Failure>
      <div className="actions">
        <Button onPress={onClose} autoFocus>
          {t("common.cancel")}
        </Button>
        <Button look="danger" onPress={confirm} isDisabled={isBusy} data-testid="confirm-yes">
          {action}
        </Button>
      </div>
    </Dialog>
  );
}

/** What went wrong, in words. */
export function Failure({ children, ...rest }: ComponentProps<"p">) {
  return children ? (
    <p className="failure" role="alert" dir="auto" {...rest}>
      <Icon name="warning" /> <span>{children}</span>
    </p>
  ) : null;
}

/** A labelled field of a form; `children` is given the id of the field. */
export function Field({
  label,
  hint,
  children,
  className = "",
}: {
  label: string;
  hint?: string;
  children: (id: string) => ReactNode;
  className?: string;
}) {
  const id = useId();
  return (
    <div className={`field ${className}`}>
      <label htmlFor={id} dir="auto">
        {label}
      </label>
      {children(id)}
      {hint && <p className="hint">{hint}</p>}
    </div>
  );
}

/** A choice of one among few, all of which are seen. */
export function Segments<T extends string>({
  label,
  value,
  options,
  onChange,
  testId,
}: {
  label: string;
  value: T;
  options: { id: T; label: string; title?: string }[];
  onChange: (value: T) => void;
  testId?: string;
}) {
  const name = useId();
  return (
    <fieldset className="segments">
      <legend className="visually-hidden">{label}</legend>
      {options.map((each) => (
        <label key={each.id} title={each.title}>
          <input
            type="radio"
            name={name}
            checked={each.id === value}
            onChange={() => onChange(each.id)}
            data-testid={testId && `${testId}-${each.id}`}
          />
          <span>{each.label}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** A place with nothing in it: what it is for and what to do next. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A name that is cut in its middle where it is too long, and whole when it is pointed at. */
export function Name({ children }: { children: string }) {
  const [start, end] = startAndEnd(children);
  return (
    <span className="name" title={children} dir="auto">
      <span className="name-start">{start}</span>
      <span className="name-end">{end}</span>
    </span>
  );
}

/** Announces changes of its text to screen readers. */
export function Status({ children, className = "" }: { children: ReactNode; className?: string }) {
  return (
    <p role="status" aria-live="polite" className={className}>
      {children}
    </p>
  );
}

/** Whether a click outside or Escape has ended something that stays open by itself. */
export function useLeave(onLeave: () => void) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const hear = (event: PointerEvent) => !element.current?.contains(event.target as Node) && onLeave();
    document.addEventListener("pointerdown", hear);
    return () => document.removeEventListener("pointerdown", hear);
  });
  return element;
}
