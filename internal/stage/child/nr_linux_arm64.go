package child

const (
	sysTimerfdCreate  = 85
	sysTimerfdSettime = 86
	sysSignalfd4      = 74
	sysExecveat       = 281
	sysSetns          = 268
	sysMemfdCreate    = 279
	sysGetrandom      = 278
)
