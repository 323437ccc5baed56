" Drives a real Vim with ALE: vim --not-a-term -N -u vimrc -S drive.vim
" Reads what to do from the environment; appends a line of JSON for each step to $SAID; exit 0 pass, 1 fail.
func! Say(step, value) abort
  call writefile([json_encode({'step': a:step, 'value': a:value})], $SAID, 'a')
endfunc

" Vim handles channels and timers while it sleeps.
func! WaitFor(what, condition) abort
  let started = reltime()
  while reltimefloat(reltime(started)) * 1000 < str2nr($PATIENCE_MS)
    if a:condition()
      return
    endif
    sleep 20m
  endwhile
  throw 'waited in vain for ' . a:what
endfunc

func! Finding() abort
  let found = get(get(g:ale_buffer_info, bufnr(''), {}), 'loclist', [])
  return get(filter(copy(found), {_, d -> get(d, 'code', '') ==# $RULE}), 0, {})
endfunc

func! Preview() abort
  for window in range(1, winnr('$'))
    if getwinvar(window, '&previewwindow')
      return join(getbufline(winbufnr(window), 1, '$'), "\n")
    endif
  endfor
  return ''
endfunc

func! Drive() abort
  execute 'edit ' . fnameescape($SCRIPT)
  let script = bufnr('')
  call WaitFor('diagnostics', {-> !empty(Finding())})
  let d = Finding()
  call Say('diagnostic', {'text': strpart(getline(d.lnum), d.col - 1, d.end_col - d.col + 1), 'message': d.text})
  call cursor(d.lnum, d.col)

  let g:ale_hover_to_preview = 1
  ALEHover
  call WaitFor('the hover', {-> Preview() =~# 'on B200'})
  call Say('hover', Preview())
  pclose

  let before = getline(1, '$')
  ALECodeAction
  call feedkeys("1\<CR>", 't')  " answers the menu that the reply opens
  call WaitFor('the fix', {-> getline(1, '$') !=# before})
  write
  call WaitFor('the diagnostic to go', {-> empty(Finding())})
endfunc

try
  call Drive()
catch
  call Say('failed', v:exception . ' at ' . v:throwpoint)
  cquit 1
endtry
qall!
