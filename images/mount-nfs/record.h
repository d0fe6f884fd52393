/* Guards what libnfs reads: whole replies of an NFS server, each from one connection. */
#ifndef TRAINYARD_RECORD_H
#define TRAINYARD_RECORD_H

/* To be called after a context of libnfs was destroyed: a half reply that it held is gone with it. */
void record_forget(void);

#endif
