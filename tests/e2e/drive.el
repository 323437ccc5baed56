;;; drive.el --- Drives a real Emacs: emacs -q --batch -l drive.el  -*- lexical-binding: t -*-
;; Reads what to do from the environment; writes one line of JSON for each step to standard output; exit 0 pass, 1 fail.
;; -q, not -Q: that would leave Debian's packages out.
(require 'cl-lib)
(require 'json)
(package-initialize)
(require 'flymake)
(require 'sh-script)
(setq make-backup-files nil create-lockfiles nil flymake-no-changes-timeout 0.1 coding-system-for-read 'utf-8
      coding-system-for-write 'utf-8)

(defvar patience (/ (string-to-number (getenv "PATIENCE_MS")) 1000.0))
(defvar rule (getenv "RULE"))

(defun say (step value)
  (princ (concat (json-encode (list (cons 'step step) (cons 'value value))) "\n")))

(defun wait-for (what condition)
  "Let Emacs handle what comes until CONDITION holds; its value."
  (let ((end (+ (float-time) patience)) found)
    (while (and (not (setq found (funcall condition))) (< (float-time) end))
      (accept-process-output nil 0.02))
    (or found (error "Waited in vain for %s" what))))

(defun all-text ()
  (buffer-substring-no-properties (point-min) (point-max)))

(defun open-script ()
  "Open the script as a person does: hooks run, and what waits for the next command runs too."
  (find-file (getenv "SCRIPT"))
  (run-hooks 'post-command-hook))

(defun finding ()
  (cl-find-if (lambda (d) (string-match-p "refused" (flymake-diagnostic-text d))) (flymake-diagnostics)))

(defun see-finding ()
  (flymake-start)
  (let ((d (wait-for "diagnostics" #'finding)))
    (say "diagnostic" (list (cons 'message (flymake-diagnostic-text d))
                            (cons 'text (buffer-substring-no-properties (flymake-diagnostic-beg d)
                                                                        (flymake-diagnostic-end d)))))
    (goto-char (flymake-diagnostic-beg d))))

(defmacro answering-yes (&rest body)
  "Answer every question of BODY: the first choice, yes."
  `(cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) t))
             ((symbol-function 'yes-or-no-p) (lambda (&rest _) t))
             ((symbol-function 'completing-read)
              (lambda (_ choices &rest _)
                (let ((all (all-completions "" choices)))
                  (say "menu" (vconcat all))
                  (car all)))))
     ,@body))

(defun see-fixed (before)
  (wait-for "the fix" (lambda () (not (equal (all-text) before))))
  (when (bound-and-true-p eglot--managed-mode)
    (eglot--signal-textDocument/didChange))  ; which waits for an idle Emacs; in batch that never comes
  (wait-for "the diagnostic to go" (lambda () (not (finding))))
  (save-buffer))

(defun hover-with-eglot ()
  "What hover says, once it says what the test waits for: settings may reach the server after the first diagnostics."
  (let ((text (plist-get (plist-get (jsonrpc-request (eglot--current-server-or-lose) :textDocument/hover
                                                     (eglot--TextDocumentPositionParams))
                                    :contents)
                         :value)))
    (and (string-match-p (regexp-quote (getenv "HOVER")) text) text)))

(defun with-eglot ()
  (require 'eglot)
  (setq eglot-sync-connect (round patience) eglot-connect-timeout (round patience) eglot-autoshutdown t
        eglot-send-changes-idle-time 0.05)
  (load (getenv "INIT") nil t)
  (open-script)
  (wait-for "the server" #'eglot-managed-p)
  (say "attached" (plist-get (eglot--server-info (eglot-current-server)) :name))
  (see-finding)
  (say "hover" (wait-for "the hover" #'hover-with-eglot))
  (see-finding)  ; settings may have moved it since
  (let ((before (all-text)) (at (point)))
    (let ((last-nonmenu-event ?\r))  ; from the keyboard, not by mouse
      (answering-yes (eglot-code-actions at (1+ at) "quickfix" t)))
    (see-fixed before))
  (goto-char (point-min))
  (search-forward "--served-model-name")
  (goto-char (match-beginning 0))
  (insert "--page-siz ")
  (backward-char 1)
  (eglot--signal-textDocument/didChange)
  (completion-at-point)
  (say "completed" (buffer-substring-no-properties (line-beginning-position) (line-end-position))))

(defun with-lsp-mode ()
  (require 'lsp-mode)
  (setq lsp-diagnostics-provider :flymake lsp-auto-guess-root t lsp-enable-file-watchers nil
        lsp-session-file (make-temp-file "lsp-session") lsp-idle-delay 0.05 lsp-modeline-code-actions-enable nil
        lsp-keep-workspace-alive nil lsp-enable-suggest-server-download nil lsp-response-timeout (round patience)
        lsp-warn-no-matched-clients nil)
  (load (getenv "INIT") nil t)
  (open-script)
  (lsp)
  (wait-for "the server" (lambda () (and (lsp-workspaces) (eq 'initialized (lsp--workspace-status (car (lsp-workspaces)))))))
  (say "attached" (mapconcat (lambda (w) (symbol-name (lsp--client-server-id (lsp--workspace-client w)))) (lsp-workspaces) " "))
  (see-finding)
  (say "hover" (lsp:markup-content-value
                (lsp:hover-contents (lsp-request "textDocument/hover" (lsp--text-document-position-params)))))
  (let ((before (all-text)) (actions (append (lsp-code-actions-at-point "quickfix") nil)))
    (say "menu" (vconcat (mapcar #'lsp:code-action-title actions)))
    (lsp-execute-code-action (car actions))
    (see-fixed before)))

(condition-case problem
    (progn (funcall (intern (getenv "DRIVE"))) (kill-emacs 0))
  (error (say "failed" (format "%S" problem)) (kill-emacs 1)))
