//! Messages of elements that do not lie one after another: the fast interface with a [`Layout`].
//!
//! The elements are packed in one pass when the message is sent, and put to their places in one
//! pass when it has come. The message itself is that of `fast.rs`, so either side may be a call
//! without a layout.

use crate::communicator::{Communicator, Underway};
use crate::engine::SendMode;
use crate::envelope::{Envelope, Status};
use crate::error::{CallSite, Error, ErrorClass};
use crate::fast::open_elements;
use crate::layout::Layout;
use crate::payload::Elements;
use crate::request::Request;
use crate::tag::{Source, Tag, Tags};
use bytemuck::Pod;

/// # Elements at places of a layout
/// A [`Layout`] says which elements of a slice are sent, or where those of a message are put. Other
/// operations take what [`Layout::pack`] gives, and [`Parts::pack`](crate::Parts::pack).
impl Communicator {
    /// Sends the elements of a slice that a layout selects.
    ///
    /// # Errors
    /// As for [`send_slice`](Self::send_slice), and if the layout reaches beyond the slice.
    ///
    /// # Complexity
    /// One copy of the elements.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Layout};
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(2, |world| async move {
    ///     // A matrix of 3 by 3.
    ///     let column = |number| Layout::vector(3, 1, 3).shifted(number);
    ///     if world.rank() == 0 {
    ///         let matrix = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    ///         world.send_layout(1, (), &matrix, &column(2)).await?;
    ///     } else {
    ///         let mut matrix = [0; 9];
    ///         world.recv_layout(0, (), &mut matrix, &column(0)).await?;
    ///         assert_eq!(matrix, [3, 0, 0, 6, 0, 0, 9, 0, 0]);
    ///     }
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[track_caller]
    pub fn send_layout<T: Pod + Send + Sync>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: &[T],
        layout: &Layout,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let (call, tag) = (self.call("send_layout"), tag.into());
        async move {
            let underway = self.begin_laid_out(call, to, tag, elements, layout)?;
            self.end_send(call, to, underway).await
        }
    }

    /// Starts to send the elements of a slice that a layout selects. They are copied before the
    /// call returns, so the slice is free again.
    ///
    /// # Errors
    /// As for [`send_layout`](Self::send_layout); the request has the error.
    #[track_caller]
    pub fn isend_layout<T: Pod + Send>(
        &self,
        to: usize,
        tag: impl Into<Tag>,
        elements: &[T],
        layout: &Layout,
    ) -> Request<()> {
        let call = self.call("isend_layout");
        let begun = self.begin_laid_out(call, to, tag.into(), elements, layout);
        Request::of_send(self, call, to, begun, ())
    }

    /// Waits for the first message that matches, and puts its elements to the places of a layout,
    /// in their order. The status tells how many there were. If there are fewer than places, the
    /// other places stay as they are.
    ///
    /// # Errors
    /// As for [`recv_into`](Self::recv_into); if the layout reaches beyond the slice, in which case
    /// no message is taken.
    ///
    /// # Cancellation
    /// No message is lost.
    ///
    /// # Examples
    /// See [`send_layout`](Self::send_layout).
    #[track_caller]
    pub fn recv_layout<T: Pod + Send>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tags>,
        elements: &mut [T],
        layout: &Layout,
    ) -> impl Future<Output = Result<Status, Error>> + Send {
        let (call, source, tags) = (self.call("recv_layout"), source.into(), tag.into());
        async move {
            check_end(call, layout, elements.len())?;
            let envelope = self.receive(call, self.own(), source, tags).await?;
            place(call, envelope, elements, layout)
        }
    }

    /// Sends the elements that one layout selects, and receives to the places of another, in the
    /// same slice: the borders of a field. The elements that are sent are those from before the
    /// call.
    ///
    /// # Errors
    /// As for [`send_layout`](Self::send_layout) and [`recv_layout`](Self::recv_layout).
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Layout};
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     // Two rows and four columns, of which the first and the last are the neighbours'.
    ///     let (rank, size) = (world.rank(), world.size());
    ///     let mut field = [rank; 8];
    ///     let column = |number| Layout::vector(2, 1, 4).shifted(number);
    ///     let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    ///     world.sendrecv_layout(&mut field, right, (), &column(2), left, (), &column(0)).await?;
    ///     world.sendrecv_layout(&mut field, left, (), &column(1), right, (), &column(3)).await?;
    ///     assert_eq!(field, [left, rank, rank, right, left, rank, rank, right]);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[expect(clippy::too_many_arguments, reason = "a send and a receive have three each")]
    #[track_caller]
    pub fn sendrecv_layout<T: Pod + Send>(
        &self,
        elements: &mut [T],
        to: usize,
        tag: impl Into<Tag>,
        sent: &Layout,
        source: impl Into<Source>,
        source_tag: impl Into<Tags>,
        received: &Layout,
    ) -> impl Future<Output = Result<Status, Error>> + Send {
        let (call, tag, source, tags) =
            (self.call("sendrecv_layout"), tag.into(), source.into(), source_tag.into());
        async move {
            check_end(call, received, elements.len())?;
            let underway = self.begin_laid_out(call, to, tag, elements, sent)?;
            let envelope = self.receive(call, self.own(), source, tags).await?;
            self.end_send(call, to, underway).await?;
            place(call, envelope, elements, received)
        }
    }

    fn begin_laid_out<T: Pod + Send>(
        &self,
        call: CallSite,
        to: usize,
        tag: Tag,
        elements: &[T],
        layout: &Layout,
    ) -> Result<Underway, Error> {
        check_end(call, layout, elements.len())?;
        self.begin_payload(call, to, tag, Elements(layout.pack(elements)), SendMode::Standard)
    }
}

/// # Errors
/// If the layout reaches beyond a slice of this length.
fn check_end(call: CallSite, layout: &Layout, length: usize) -> Result<(), Error> {
    match layout.end() <= length {
        true => Ok(()),
        false => {
            let text = format!("the layout ends at {}, and the slice at {length}", layout.end());
            Err(call.error(ErrorClass::Buffer, text))
        }
    }
}

/// Opens a message to the places of a layout.
fn place<T: Pod + Send>(
    call: CallSite,
    envelope: Envelope,
    elements: &mut [T],
    layout: &Layout,
) -> Result<Status, Error> {
    open_elements::<T>(call, &envelope, layout.len(), |bytes| {
        layout.place(size_of::<T>(), bytes, bytemuck::cast_slice_mut(elements));
    })
}
